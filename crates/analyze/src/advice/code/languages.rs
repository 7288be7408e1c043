//! Remedies in terms of the language of the user's code, where a rule's default remedy is for other languages.
//!
//! The patterns of the rules are elsewhere.

use super::super::Rule;
use super::{allocation, formatting, garbage_collection, growth, locks, parsing};
use crate::frame::ViewFrame;

/// A language with its own remedies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Go,
    Java,
    JavaScript,
    Rust,
}

impl Language {
    /// Returns the language of a function, from its source file or else from the binary that holds its code.
    pub fn of(frame: &ViewFrame<'_>) -> Option<Self> {
        let ending = |path: &str| path.rsplit_once('.').map(|(_, ending)| ending.to_owned());
        match ending(frame.file).unwrap_or_default().as_str() {
            "go" => return Some(Self::Go),
            "java" | "kt" | "scala" => return Some(Self::Java),
            "js" | "mjs" | "cjs" | "ts" => return Some(Self::JavaScript),
            "rs" => return Some(Self::Rust),
            _ => {}
        }
        match frame.dso_path.rsplit('/').next().unwrap_or_default() {
            "node" | "deno" | "bun" => Some(Self::JavaScript),
            name if name.starts_with("libnode.so") => Some(Self::JavaScript),
            name if name.starts_with("libjvm.so") => Some(Self::Java),
            _ => None,
        }
    }
}

/// Rules with a remedy for a language. Everything else is the same as in the default rule.
const RULES: [(Language, Rule); 12] = [
    (
        Language::Go,
        with(
            &growth::RULE.rule,
            "strings.Builder or bytes.Buffer in place of += in a loop; a slice that is kept, or made with its length (make([]T, 0, n))",
        ),
    ),
    (
        Language::JavaScript,
        with(
            &growth::RULE.rule,
            "push in place of a spread or concat in a loop ([...list, x]); collect pieces in an array and join them",
        ),
    ),
    (
        Language::Rust,
        with(
            &growth::RULE.rule,
            "with_capacity or reserve once what is known, not for each element; push_str and write! into one String in place of +",
        ),
    ),
    (
        Language::Go,
        with(
            &formatting::RULE.rule,
            "format less (not what nobody reads); strconv.AppendInt and a strings.Builder in place of fmt.Sprintf; a binary format",
        ),
    ),
    (
        Language::Rust,
        with(
            &formatting::RULE.rule,
            "format less (not what nobody reads); write! into one String that is kept in place of format!; itoa, ryu, or a binary format",
        ),
    ),
    (
        Language::Go,
        with(
            &parsing::RULE.rule,
            "parse what stays the same once and keep the values; strconv on the pieces in place of fmt.Sscanf; a binary format",
        ),
    ),
    (
        Language::Rust,
        with(
            &parsing::RULE.rule,
            "parse what stays the same once and keep the values; split and parse of slices in place of new Strings; a binary format",
        ),
    ),
    (
        Language::Rust,
        with(
            &allocation::RULE.rule,
            "reuse buffers (clear, take), with_capacity, borrow in place of clone, SmallVec or an arena (bumpalo); then try another allocator \
             (mimalloc, jemalloc)",
        ),
    ),
    (
        Language::Go,
        with(
            &garbage_collection::RULE.rule,
            "make fewer objects: keep buffers and use them again (sync.Pool), values in place of pointers, lengths given to make; a higher limit \
             (GOGC, GOMEMLIMIT)",
        ),
    ),
    (
        Language::JavaScript,
        with(
            &garbage_collection::RULE.rule,
            "make fewer objects: keep arrays and buffers and use them again, typed arrays, no copies by spread or JSON; a higher limit \
             (--max-semi-space-size)",
        ),
    ),
    (
        Language::Java,
        with(
            &garbage_collection::RULE.rule,
            "make fewer objects: keep buffers and use them again, primitives in place of boxes, StringBuilder in place of +; a higher limit (-Xmx)",
        ),
    ),
    (
        Language::Go,
        with(
            &locks::RULE.rule,
            "hold a lock for several operations, give each goroutine its own part and merge, sync/atomic, sync.RWMutex where most read",
        ),
    ),
];

const fn with(rule: &Rule, remedy: &'static str) -> Rule {
    Rule {
        name: rule.name,
        claim: rule.claim,
        pattern: rule.pattern,
        threshold: rule.threshold,
        remedy,
        bound: rule.bound,
        source: rule.source,
    }
}

/// Returns the rule with the remedy for a language.
pub(super) fn in_words_of(language: Option<Language>, rule: &'static Rule) -> &'static Rule {
    static WORDS: [(Language, Rule); RULES.len()] = RULES;
    let is_it = |(of, other): &&(Language, Rule)| Some(*of) == language && other.name == rule.name;
    WORDS.iter().find(is_it).map_or(rule, |(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_speaks_the_language_of_the_code() {
        let remedy = |language| in_words_of(language, &growth::RULE.rule).remedy;
        assert!(remedy(Some(Language::Go)).contains("strings.Builder"));
        assert!(remedy(Some(Language::JavaScript)).contains("push"));
        assert_eq!(remedy(None), growth::RULE.rule.remedy);
        assert_eq!(remedy(Some(Language::Java)), growth::RULE.rule.remedy, "nothing of its own");
        for (at, (language, rule)) in RULES.iter().enumerate() {
            let is_same = |(other, one): &(Language, Rule)| other == language && one.name == rule.name;
            assert!(!RULES[..at].iter().any(is_same), "{language:?} {} twice", rule.name);
            assert!(!rule.remedy.contains("  "), "{}", rule.remedy);
        }
    }
}
