//! Kinds of the arguments of calls, read from `kinds.txt`.
//!
//! Elsewhere: the arguments themselves (`signature`), their formatting (`decode`).

use std::sync::LazyLock;

use crate::layouts::Layout;
use crate::sets::Set;

/// The rules, in file order.
static RULES: LazyLock<Vec<Rule>> =
    LazyLock::new(|| include_str!("kinds.txt").lines().filter_map(Rule::parse).collect());

/// A line of `kinds.txt`.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Names of calls; `*` for any call; `type` if `argument` is a type.
    calls: Vec<&'static str>,
    argument: &'static str,
    /// Kind of the argument.
    pub kind: Kind,
    /// Condition under which the rule applies.
    pub condition: Option<Condition>,
}

/// Condition on another argument: that it has a value, or a flag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    /// Name of the other argument.
    pub argument: &'static str,
    /// The value or flag.
    pub value: &'static str,
    /// Whether `value` is a flag.
    pub is_flag: bool,
}

/// Kind of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Not useful, and not shown.
    Hidden,
    /// A signed number.
    Signed,
    /// An unsigned number.
    Unsigned,
    /// An address, or bits without names.
    Hex,
    /// Permissions, in octal.
    Octal,
    /// A value of a set.
    Set(&'static Set),
    /// A descriptor.
    Fd,
    /// A descriptor of a directory, or the working directory (`AT_FDCWD`).
    DirFd,
    /// An address of memory.
    Memory(Memory),
}

/// Memory that a call reads or writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// The call reads it.
    pub is_in: bool,
    /// The call writes it.
    pub is_out: bool,
    /// Contents of the memory.
    pub form: Form,
    /// Number of elements.
    pub count: Option<Many>,
}

/// Contents of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// A NUL-terminated string.
    String,
    /// A NUL-terminated path.
    Path,
    /// A list of strings.
    List,
    /// Any bytes.
    Bytes,
    /// A bit set of small numbers.
    Bits,
    /// A socket option: usually an integer.
    Option,
    /// A socket address.
    SockAddr,
    /// A socket message.
    Message,
    /// A structure.
    Layout(&'static Layout),
}

/// Source of the number of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Many {
    /// An argument.
    Argument(&'static str),
    /// Integer at the address in an argument.
    Behind(&'static str),
    /// The call's return value.
    Result,
    /// A constant.
    Always(u16),
}

impl Rule {
    /// Parses a line. `None` if it is empty or has an unknown word.
    fn parse(line: &'static str) -> Option<Self> {
        let line = line.split('#').next()?;
        let (rule, condition) = match line.split_once(" if ") {
            Some((rule, condition)) => (rule, Some(Condition::parse(condition.trim())?)),
            None => (line, None),
        };
        let mut words = rule.split_whitespace();
        let calls = words.next()?.split(',').collect();
        let argument = words.next()?;
        Some(Self { calls, argument, kind: Kind::parse(words.next()?, words.next())?, condition })
    }

    /// Rules for an argument of a call, by its name and type.
    pub fn of<'a>(
        call: &'a str,
        argument: &'a str,
        c_type: &'a str,
    ) -> impl Iterator<Item = &'static Rule> + use<'a> {
        RULES.iter().filter(move |rule| match &rule.calls[..] {
            ["type"] => rule.argument == c_type,
            ["*"] => rule.argument == argument,
            calls => rule.argument == argument && calls.contains(&call),
        })
    }
}

impl Condition {
    fn parse(text: &'static str) -> Option<Self> {
        let (argument, value) = text.split_once(['=', '&'])?;
        Some(Self { argument, value, is_flag: text.contains('&') })
    }
}

impl Kind {
    fn parse(word: &'static str, more: Option<&'static str>) -> Option<Self> {
        Some(match word {
            "hidden" => Kind::Hidden,
            "dec" => Kind::Signed,
            "unsigned" => Kind::Unsigned,
            "hex" => Kind::Hex,
            "octal" => Kind::Octal,
            "set" => Kind::Set(Set::find(more?)?),
            "fd" => Kind::Fd,
            "dirfd" => Kind::DirFd,
            "in" | "out" | "both" => {
                let (form, count) = match more?.strip_suffix(']').and_then(|text| text.split_once('[')) {
                    Some((form, count)) => (form, Some(Many::parse(count))),
                    None => (more?, None),
                };
                Kind::Memory(Memory {
                    is_in: word != "out",
                    is_out: word != "in",
                    form: Form::parse(form)?,
                    count,
                })
            }
            _ => return None,
        })
    }
}

impl Form {
    fn parse(word: &'static str) -> Option<Self> {
        Some(match word {
            "string" => Form::String,
            "path" => Form::Path,
            "list" => Form::List,
            "bytes" => Form::Bytes,
            "bits" => Form::Bits,
            "option" => Form::Option,
            "sockaddr" => Form::SockAddr,
            "message" => Form::Message,
            name => Form::Layout(Layout::find(name)?),
        })
    }
}

impl Many {
    fn parse(word: &'static str) -> Self {
        match (word, word.strip_prefix('*'), word.parse()) {
            ("result", _, _) => Many::Result,
            (_, Some(argument), _) => Many::Behind(argument),
            (_, _, Ok(number)) => Many::Always(number),
            (argument, _, _) => Many::Argument(argument),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_says_something_that_is_known() {
        let lines = include_str!("kinds.txt").lines();
        let lines: Vec<_> = lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#')).collect();
        for line in &lines {
            assert!(Rule::parse(line).is_some(), "{line}");
        }
        assert_eq!(RULES.len(), lines.len());
    }

    #[test]
    fn calls_that_are_named_exist() {
        use crate::{Abi, number};
        for call in RULES.iter().flat_map(|rule| &rule.calls).filter(|call| !["type", "*"].contains(call)) {
            assert!(number(Abi::X86_64, call).is_some(), "{call}");
        }
    }
}
