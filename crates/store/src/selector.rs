//! Label selectors in the syntax of Prometheus and Pyroscope: `{service_name="api", pod=~"api-.*"}`.
//!
//! The crate `promql-parser` is not used: it parses all of PromQL, with a parser generator and a hundred dependencies, and rejects the empty
//! selector, which clients send to select everything. Regular expressions are those of the `regex` crate, which match in linear time.

use std::fmt;

use regex::Regex;

use crate::labels::Labels;

/// Longest selector in bytes, and memory limit of one of its regular expressions.
const MOST_TEXT: usize = 16 << 10;
const MOST_REGEX: usize = 1 << 20;

/// Selects the series whose labels satisfy all matchers.
#[derive(Clone, Debug, Default)]
pub struct Selector(Vec<Matcher>);

/// A condition on a label. A missing label has an empty value.
#[derive(Clone, Debug)]
struct Matcher {
    name: String,
    pattern: Pattern,
    negated: bool,
}

#[derive(Clone, Debug)]
enum Pattern {
    Equal(String),
    /// The pattern as written, and compiled to match whole values.
    Regex(String, Regex),
}

impl Pattern {
    fn regex(text: String) -> Result<Self, String> {
        // Compile the pattern by itself first: `a)|(b` would close the group that makes it match whole values.
        let alone = regex::RegexBuilder::new(&text).size_limit(MOST_REGEX).build();
        let whole = || regex::RegexBuilder::new(&format!("^(?s:{text})$")).size_limit(MOST_REGEX).build();
        let regex = alone.and_then(|_| whole());
        let regex = regex.map_err(|error| format!("invalid regular expression: {error}"))?;
        Ok(Self::Regex(text, regex))
    }
}

/// A syntax error in a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorError {
    /// The selector.
    pub text: String,
    /// Position of the error, in characters from 1.
    pub column: usize,
    /// Description of the error.
    pub message: String,
}

impl fmt::Display for SelectorError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, column, message } = self;
        write!(out, "parsing label selector {text:?}: 1:{column}: parse error: {message}")
    }
}

impl std::error::Error for SelectorError {}

impl Selector {
    /// Parses a selector; `{}` and the empty text select everything.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut parser = Parser { text, at: 0 };
        if text.len() > MOST_TEXT {
            return Err(parser.error("the selector is longer than 16 KiB"));
        }
        let matchers = parser.selector()?;
        Ok(Self(matchers))
    }

    /// Adds the condition that a label has this value.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.push(Matcher { name: name.into(), pattern: Pattern::Equal(value.into()), negated: false });
        self
    }

    /// Adds the condition that a label has one of these values.
    ///
    /// # Errors
    /// The values are too long.
    pub fn with_any(mut self, name: &str, values: &[&str]) -> Result<Self, SelectorError> {
        let escaped: Vec<String> = values.iter().map(|value| regex::escape(value)).collect();
        let text = escaped.join("|");
        let pattern = Pattern::regex(text.clone());
        let pattern = pattern.map_err(|message| SelectorError { text, column: 1, message })?;
        self.0.push(Matcher { name: name.to_owned(), pattern, negated: false });
        Ok(self)
    }

    /// Whether a series is selected.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|matcher| {
            let value = labels.get(&matcher.name).unwrap_or_default();
            let meets = match &matcher.pattern {
                Pattern::Equal(wanted) => value == wanted,
                Pattern::Regex(_, regex) => regex.is_match(value),
            };
            meets != matcher.negated
        })
    }
}

/// The form that [`Selector::parse`] reads.
impl fmt::Display for Selector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        out.write_str("{")?;
        for (place, matcher) in self.0.iter().enumerate() {
            let (operator, value) = match (&matcher.pattern, matcher.negated) {
                (Pattern::Equal(value), false) => ("=", value),
                (Pattern::Equal(value), true) => ("!=", value),
                (Pattern::Regex(value, _), false) => ("=~", value),
                (Pattern::Regex(value, _), true) => ("!~", value),
            };
            let comma = if place == 0 { "" } else { "," };
            let name = match is_plain(&matcher.name) {
                true => matcher.name.clone(),
                false => format!("\"{}\"", quoted(&matcher.name)),
            };
            write!(out, "{comma}{name}{operator}\"{}\"", quoted(value))?;
        }
        out.write_str("}")
    }
}

/// Whether a name needs no quotes in any selector syntax.
fn is_plain(name: &str) -> bool {
    let is_part = |one: u8| one.is_ascii_alphanumeric() || one == b'_';
    !name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(is_part)
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn error(&self, message: impl Into<String>) -> SelectorError {
        let before = self.text.get(..self.at).map_or(0, |before| before.chars().count());
        SelectorError { text: self.text.into(), column: before + 1, message: message.into() }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, token: &str) -> bool {
        self.blanks();
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    fn unexpected(&self, place: &str) -> SelectorError {
        match self.rest().chars().next() {
            None => self.error(format!("unexpected end of input {place}")),
            Some(other) => self.error(format!("unexpected character {place}: {other:?}")),
        }
    }

    fn selector(&mut self) -> Result<Vec<Matcher>, SelectorError> {
        let mut matchers = Vec::new();
        if !self.take("{") {
            return Err(self.unexpected("before {"));
        }
        while !self.take("}") {
            matchers.push(self.matcher()?);
            if !self.take(",") && !self.rest().starts_with('}') {
                return Err(self.unexpected("inside braces"));
            }
        }
        self.blanks();
        if !self.rest().is_empty() {
            return Err(self.unexpected("after }"));
        }
        Ok(matchers)
    }

    fn matcher(&mut self) -> Result<Matcher, SelectorError> {
        let name = self.name()?;
        let operators = [("=~", true, false), ("!~", true, true), ("!=", false, true), ("=", false, false)];
        let operator = operators.into_iter().find(|&(token, ..)| self.take(token));
        let Some((_, is_regex, negated)) = operator else {
            return Err(self.unexpected("inside braces"));
        };
        self.blanks();
        let value_at = self.at;
        let value = self.quoted()?;
        let pattern = if is_regex {
            Pattern::regex(value).map_err(|message| {
                self.at = value_at;
                self.error(message)
            })?
        } else {
            Pattern::Equal(value)
        };
        Ok(Matcher { name, pattern, negated })
    }

    /// Parses a label name, quoted if it is not an identifier. Names with dots are accepted unquoted.
    fn name(&mut self) -> Result<String, SelectorError> {
        self.blanks();
        if self.rest().starts_with(['"', '\'', '`']) {
            return self.quoted();
        }
        let is_part = |one: char| one.is_alphanumeric() || matches!(one, '_' | '.' | ':' | '/' | '-');
        let rest = self.rest();
        let length = rest.find(|one| !is_part(one)).unwrap_or(rest.len());
        if length == 0 {
            return Err(self.unexpected("inside braces"));
        }
        self.at += length;
        Ok(rest[..length].to_owned())
    }

    fn quoted(&mut self) -> Result<String, SelectorError> {
        let rest = self.rest();
        let Some(quote @ ('"' | '\'' | '`')) = rest.chars().next() else {
            return Err(self.unexpected("inside braces"));
        };
        let mut text = String::new();
        let mut chars = rest.char_indices().skip(1);
        while let Some((place, one)) = chars.next() {
            match one {
                end if end == quote => {
                    self.at += place + quote.len_utf8();
                    return Ok(text);
                }
                '\\' if quote != '`' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, other @ ('\\' | '"' | '\''))) => text.push(other),
                    _ => return Err(self.error("unknown escape sequence in a quoted string")),
                },
                other => text.push(other),
            }
        }
        Err(self.error("unterminated quoted string"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn selects(selector: &str, labels: &[(&str, &str)]) -> bool {
        Selector::parse(selector).unwrap().matches(&Labels::new(labels.iter().copied()))
    }

    #[test]
    fn matchers_mean_what_they_mean_in_prometheus() {
        let api = [("service_name", "api"), ("pod", "api-1")];
        for selector in [
            "",
            "{}",
            r#"{service_name="api"}"#,
            r#"{ service_name = "api" , pod =~ "api-.*", }"#,
            r#"{pod!="api-2"}"#,
            r#"{pod!~"web.*"}"#,
            r#"{node=""}"#,
            r#"{"service_name"='api'}"#,
        ] {
            assert!(selects(selector, &api), "{selector}");
        }
        // A regular expression must match the whole value.
        for selector in [r#"{pod=~"api"}"#, r#"{node!=""}"#, r#"{service_name="api",pod="x"}"#] {
            assert!(!selects(selector, &api), "{selector}");
        }
        assert!(selects(r#"{path="a\"b\\c"}"#, &[("path", "a\"b\\c")]));
    }

    #[test]
    fn a_selector_survives_its_text() {
        for text in ["{}", r#"{a="b"}"#, r#"{"a b"!="c\"\\d\ne",x_1=~"y|z","1n"!~".+\\d","a.b"="c"}"#] {
            let selector = Selector::parse(text).unwrap();
            assert_eq!(selector.to_string(), text);
            assert_eq!(Selector::parse(&selector.to_string()).unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_error_says_where() {
        let error = |text: &str| Selector::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("{service_name="),
            "parsing label selector \"{service_name=\": 1:15: parse error: unexpected end of input inside braces"
        );
        assert!(error("service").contains("1:1: parse error: unexpected character before {: 's'"));
        assert!(error(r#"{a=~"("}"#).contains("1:5: parse error: invalid regular expression"));
        assert!(error(r#"{a="b"#).contains("unterminated"));
        assert!(error(r#"{a=~"b)|(c"}"#).contains("invalid regular expression"));
        assert!(error(r#"{a="b"} x"#).contains("after }"));
        assert!(error(&format!("{{a={:?}}}", "x".repeat(20_000))).contains("16 KiB"));
    }
}
