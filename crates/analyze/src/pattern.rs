//! How a user names functions, files and threads: by exact text, or by a regular expression.

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

/// A regular expression that can't be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPattern {
    /// The expression.
    pub pattern: String,
    /// What is wrong with it.
    pub reason: String,
}

impl std::fmt::Display for BadPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is no regular expression: {}", self.pattern, self.reason)
    }
}

impl std::error::Error for BadPattern {}

impl Pattern {
    /// A regular expression.
    pub fn regex(text: &str) -> Result<Self, BadPattern> {
        Regex::new(text)
            .map(Pattern::Regex)
            .map_err(|error| BadPattern { pattern: text.into(), reason: error.to_string() })
    }

    /// `/text/` is a regular expression, anything else exact. An absolute path ends without a slash, so the two
    /// can't be taken for each other.
    pub fn parse(text: &str) -> Result<Self, BadPattern> {
        match text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            Some(inner) if !inner.is_empty() => Pattern::regex(inner),
            _ => Ok(Pattern::Exact(text.into())),
        }
    }

    /// Whether this names `text`.
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Pattern::Exact(exact) => exact == text,
            Pattern::Regex(regex) => regex.is_match(text),
        }
    }

    /// Whether this names the function called `name`: exact text may leave out the parameter list.
    pub fn matches_function(&self, name: &str) -> bool {
        self.matches(name) || matches!(self, Pattern::Exact(exact) if exact == without_parameters(name))
    }

    /// Whether this names the file at `path`: exact text may be its last component.
    pub fn matches_path(&self, path: &str) -> bool {
        self.matches(path) || matches!(self, Pattern::Exact(exact) if path.rsplit('/').next() == Some(exact))
    }
}
