//! Options of perf and samply: those with the same meaning are accepted, for others an error names plumb's option.
//!
//! Elsewhere: aliases that clap accepts (`alias` where the option is declared).

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Commands that read a recording, which perf would take as `-i FILE`.
const READERS: [&str; 13] = [
    "report", "annotate", "script", "fold", "export", "flame", "view", "explain", "procs", "kernel", "push",
    "open", "doctor",
];

/// Options of other tools by command, with plumb's equivalent.
const HINTS: [(&str, &[&str], &str); 11] = [
    (
        "report",
        &["-g", "-G", "--call-graph"],
        "--top-down and --bottom-up show the call tree, --callers FUNCTION its callers",
    ),
    ("report", &["--tui"], "plumb view browses a recording in the terminal"),
    ("report", &["--gtk"], "plumb open shows a recording in the browser"),
    ("report", &["-c", "--comms"], "--comm NAME, once for each name"),
    ("report", &["-d", "--dsos"], "--dso FILE, once for each file"),
    ("report", &["-S", "--symbols"], "--symbol FUNCTION, once for each function"),
    ("report", &["-C"], "--cpu LIST"),
    ("record", &["-C", "--cpu"], "-a records all CPUs; --cpu LIST is an option of plumb report"),
    ("record", &["-t", "--tid"], "-p PID records all threads; --tid TID is an option of plumb report"),
    ("top", &["-d", "--delay"], "-i SECONDS"),
    ("trace", &["-S", "--with-summary"], "--summary"),
];

/// The command line with perf's `-i FILE` replaced by FILE.
pub fn translated(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let words: Vec<OsString> = words.collect();
    let reads = words.get(1).and_then(|word| word.to_str()).is_some_and(|word| READERS.contains(&word));
    let (mut is_command, last) = (!reads, words.len().saturating_sub(1));
    let keep = |(place, word): (usize, OsString)| {
        is_command |= word == "--";
        let text = word.to_str().filter(|_| !is_command);
        match text.and_then(|text| text.strip_prefix("--input").or_else(|| text.strip_prefix("-i"))) {
            // The file is the next word.
            Some("") if place < last => None,
            Some("") => Some(word),
            Some(rest) => match (rest.strip_prefix('='), word.to_string_lossy().starts_with("--")) {
                (Some(file), _) => Some(file.into()),
                (None, false) if !rest.starts_with('-') => Some(rest.into()),
                _ => Some(word),
            },
            None => Some(word),
        }
    };
    words.into_iter().enumerate().filter_map(keep).collect()
}

/// Adds plumb's equivalent of an unknown option to clap's error.
pub fn hint(error: &mut clap::Error, words: &[OsString]) {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return };
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let command = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let is_it = |(of, names, _): &&(&str, &[&str], &str)| *of == command && names.contains(&unknown.as_str());
    if let Some((_, _, here)) = HINTS.iter().find(is_it) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![(*here).into()]));
    }
}

#[cfg(test)]
mod tests {
    use super::translated;

    fn typed(line: &str) -> String {
        let words = translated(line.split(' ').map(Into::into));
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_input_file_is_typed_as_for_perf() {
        for typed_as in ["-i a.data", "--input a.data", "--input=a.data", "-ia.data"] {
            assert_eq!(
                typed(&format!("plumb report --stdio {typed_as} -n")),
                "plumb report --stdio a.data -n"
            );
        }
        for same in [
            "plumb top -i 2",
            "plumb record ls -i",
            "plumb explain -- ls -i x",
            "plumb flame --icicle x.plumb",
            "plumb report --ignore x",
            "plumb report -i",
        ] {
            assert_eq!(typed(same), same);
        }
    }
}
