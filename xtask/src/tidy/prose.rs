//! Comments, and texts of rules that are data, that open in ways that a reader has to decode: a bare "What", a pronoun without a noun, "Likewise".
//!
//! A lint of openings and words, not a judge of sentences.

use std::path::{Path, PathBuf};

use regex_lite::Regex;

use super::Finding;

/// Openings and words, with what is wrong about them.
const KINDS: [(&str, &str); 10] = [
    (r"^(What|Who|Where|When|How|That|Whose|Which)\b[^?]*$", "opens with a bare question word"),
    (r"^(Likewise|The same)\b", "opens with a reference to another comment"),
    (r"^(It|They|Its|Their|Those|This one|One that)\b", "opens with a pronoun without a noun"),
    (r"\b(so many|so much|so often|so long)\b", "says \"so many\" for a number"),
    (r"^Has \w+ \w+", "opens with \"Has X do\""),
    (r"\b(tells? of|told of|said of|heard of)\b", "says \"tells of\""),
    (r"\b(go(es)? by|went by)\b", "says \"goes by\" for \"uses\""),
    (r"\b(is|are) no \w+", "says \"is no\" for \"is not a\""),
    (r"\b(anew|meanwhile)\b", "says \"anew\" or \"meanwhile\""),
    (r"\bthat (is|are) there\b|\bthere (is|are) (none|no)\b.*\bof (it|them)\b", "says \"that is there\""),
];

/// Comment blocks of crates, by their first lines.
pub struct Prose {
    kinds: Vec<(Regex, &'static str)>,
    first_line: Regex,
    /// A text of a rule.
    text: Regex,
    found: Vec<Finding>,
}

impl Prose {
    pub fn new() -> Self {
        // The patterns are constants, and a test uses each.
        let regex = |pattern| Regex::new(pattern).expect("a pattern that compiles");
        Self {
            kinds: KINDS.map(|(pattern, what)| (regex(pattern), what)).into(),
            first_line: regex(r"^\s*(?://[/!]?|/?\*|#) (\S.*)"),
            text: regex(r#"^(?:claim|pattern|threshold|remedy\S*|bound|source) = ["']+(.*?)["']+$"#),
            found: Vec::new(),
        }
    }

    /// Looks at the comments of one file, if it is one of a crate.
    pub fn read(&mut self, file: &Path, text: &str) {
        let mut parts = file.iter().map(|part| part.to_string_lossy());
        if parts.next().as_deref() != Some("crates") {
            return;
        }
        if !file.extension().is_some_and(|end| end == "rs" || end == "c" || end == "h" || end == "toml") {
            return;
        }
        let mut was_comment = false;
        for (index, line) in text.lines().enumerate() {
            let comment = self.first_line.captures(line);
            let opening = comment.as_ref().filter(|_| !was_comment).map(|found| found[1].trim().to_owned());
            was_comment = comment.is_some();
            let text = self.text.captures(line).filter(|_| file.extension().is_some_and(|end| end == "toml"));
            let Some(opening) = opening.or(text.map(|text| text[1].to_owned())) else { continue };
            if let Some((_, what)) = self.kinds.iter().find(|(kind, _)| kind.is_match(&opening)) {
                let what = format!("a comment or text {what}: {opening}");
                self.found.push(Finding { file: PathBuf::from(file), line: index + 1, what });
            }
        }
    }

    /// All findings.
    pub fn findings(self) -> Vec<Finding> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_found_once_by_its_first_line() {
        let text = "/// What calls took.\n/// It goes on.\nfn a() {}\n// Likewise.\nfn b() {}\n/* Returns nothing. */\nfn c() {}\n\
                    //! Keeps so many of them.\n\n// Has threads stop.\n\n// Tells of others.\n\n// Goes by time, told of others.\n\n// A page is no text.\n\n\
                    // Begins anew.\n\n// A file that is there.\n\n// They run.\n";
        let mut prose = Prose::new();
        prose.read(Path::new("crates/made-up/src/lib.rs"), text);
        prose.read(Path::new("xtask/src/main.rs"), text);
        let found: Vec<&String> = prose.found.iter().map(|one| &one.what).collect();
        assert_eq!(found.len(), 9, "{found:?}");
        prose.read(
            Path::new("crates/made-up/rules/x.toml"),
            "claim = \"is no way\"\nfind.files = [\"is no way\"]\n",
        );
        assert_eq!(prose.findings().len(), 10);
    }
}
