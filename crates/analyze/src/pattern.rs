//! Patterns by which users select functions, files and threads: exact text, or a regular expression.

use regex_lite::Regex;

use crate::names::without_parameters;

/// Exact text, or a regular expression that may match anywhere in a name.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// The whole name.
    Exact(String),
    /// Matches somewhere in the name.
    Regex(Regex),
}

/// A regular expression that does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPattern {
    /// The expression.
    pub pattern: String,
    /// The error message.
    pub reason: String,
}

impl std::fmt::Display for BadPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is no regular expression: {}", self.pattern, self.reason)
    }
}

impl std::error::Error for BadPattern {}

impl Pattern {
    /// Creates a regular expression pattern.
    pub fn regex(text: &str) -> Result<Self, BadPattern> {
        Regex::new(text)
            .map(Pattern::Regex)
            .map_err(|error| BadPattern { pattern: text.into(), reason: error.to_string() })
    }

    /// Parses `/text/` as a regular expression, anything else as exact text. An absolute path does not end in a slash, so the two
    /// cannot be confused.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        match text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            Some(inner) if !inner.is_empty() => Pattern::regex(inner),
            _ => Ok(Pattern::Exact(text.into())),
        }
    }

    /// Whether this matches `text`.
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Pattern::Exact(exact) => exact == text,
            Pattern::Regex(regex) => regex.is_match(text),
        }
    }

    /// Whether this matches the function called `name`: exact text may leave out the parameter list.
    pub fn matches_function(&self, name: &str) -> bool {
        self.matches(name) || matches!(self, Pattern::Exact(exact) if exact == without_parameters(name))
    }

    /// Whether this matches the file at `path`: exact text may be its last component.
    pub fn matches_path(&self, path: &str) -> bool {
        self.matches(path) || matches!(self, Pattern::Exact(exact) if path.rsplit('/').next() == Some(exact))
    }
}
