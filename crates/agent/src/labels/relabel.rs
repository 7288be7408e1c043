//! Rules that change attributes or exclude processes, written `keep:NAME=PATTERN`, `drop:NAME=PATTERN` and
//! `replace:NAME=PATTERN=>VALUE`.
//!
//! A pattern is a regular expression that must match the whole value. A missing attribute has an empty value.

use std::collections::BTreeMap;
use std::str::FromStr;

use regex_lite::Regex;

/// Attributes of a resource.
pub(crate) type Attributes = BTreeMap<String, String>;

/// A rule that changes an attribute or excludes processes.
#[derive(Clone, Debug)]
pub struct RelabelRule {
    name: String,
    pattern: Regex,
    action: Action,
}

#[derive(Clone, Debug)]
enum Action {
    /// Exclude processes whose value does not match.
    Keep,
    /// Exclude processes whose value matches.
    Drop,
    /// Set the attribute to this value, in which `$1` is the pattern's first group. An empty value removes the attribute.
    Replace(String),
}

/// Relabeling rules, in the order in which they apply.
#[derive(Clone, Debug, Default)]
pub struct RelabelRules(pub Vec<RelabelRule>);

impl FromStr for RelabelRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected keep:NAME=PATTERN, drop:NAME=PATTERN or replace:NAME=PATTERN=>VALUE";
        let (action, rest) = text.split_once(':').ok_or(expected)?;
        let (name, rest) = rest.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or(expected)?;
        let (action, pattern) = match action {
            "keep" => (Action::Keep, rest),
            "drop" => (Action::Drop, rest),
            "replace" => {
                let (pattern, value) = rest.split_once("=>").ok_or(expected)?;
                (Action::Replace(value.to_owned()), pattern)
            }
            _ => return Err(expected.to_owned()),
        };
        let whole = format!("^(?:{pattern})$");
        let pattern = Regex::new(&whole).map_err(|error| format!("invalid pattern {pattern:?}: {error}"))?;
        Ok(Self { name: name.to_owned(), pattern, action })
    }
}

impl RelabelRules {
    /// Applies all rules. Returns `false` if one of them excludes the process.
    pub(crate) fn apply(&self, attributes: &mut Attributes) -> bool {
        for RelabelRule { name, pattern, action } in &self.0 {
            let value = attributes.get(name).map_or("", String::as_str);
            let groups = pattern.captures(value);
            match (action, groups) {
                (Action::Keep, None) | (Action::Drop, Some(_)) => return false,
                (Action::Keep, Some(_)) | (_, None) => {}
                (Action::Replace(template), Some(groups)) => {
                    let mut new = String::new();
                    groups.expand(template, &mut new);
                    if new.is_empty() {
                        attributes.remove(name);
                    } else {
                        attributes.insert(name.clone(), new);
                    }
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(rules: &[&str], attributes: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        let rules = rules.iter().map(|rule| rule.parse().expect("it is a rule")).collect();
        let mut attributes: Attributes =
            attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        RelabelRules(rules).apply(&mut attributes).then(|| attributes.into_iter().collect())
    }

    #[test]
    fn rules_keep_drop_and_replace() {
        let service = [("service.name", "api-7")];
        let is = |value: &str| Some(vec![("service.name".to_owned(), value.to_owned())]);
        assert_eq!(applied(&[], &service), is("api-7"));
        assert_eq!(applied(&["keep:service.name=api.*"], &service), is("api-7"));
        assert_eq!(applied(&["keep:service.name=api"], &service), None, "the whole value has to match");
        assert_eq!(applied(&["drop:service.name=.*-7"], &service), None);
        assert_eq!(applied(&[r"replace:service.name=(.*)-\d+=>$1"], &service), is("api"));
        assert_eq!(applied(&["replace:service.name=.*=>"], &service), Some(Vec::new()));
        assert_eq!(applied(&["keep:k8s.pod.uid="], &service), is("api-7"), "a missing one is empty");
        // Rules apply in order.
        let rules = ["replace:service.name=api.*=>web", "drop:service.name=api.*"];
        assert_eq!(applied(&rules, &service), is("web"));
    }

    #[test]
    fn other_texts_are_no_rules() {
        for text in ["", "keep", "keep:", "keep:a", "keep:=x", "take:a=b", "replace:a=b", "drop:a=("] {
            assert!(text.parse::<RelabelRule>().is_err(), "{text}");
        }
    }
}
