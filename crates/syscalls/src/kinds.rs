//! What the arguments of calls are, from `kinds.txt`.
//!
//! Not here: arguments themselves (`signature`), how they are said (`decode`).

use std::sync::LazyLock;

use crate::layouts::Layout;
use crate::sets::Set;

/// The rules, in their order.
static RULES: LazyLock<Vec<Rule>> =
    LazyLock::new(|| include_str!("kinds.txt").lines().filter_map(Rule::parse).collect());

/// A line of the file.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Names of calls; `*` for any; `type` if the argument is one.
    calls: Vec<&'static str>,
    argument: &'static str,
    /// The kind.
    pub kind: Kind,
    /// On what it depends.
    pub condition: Option<Condition>,
}

/// On what a rule depends: that another argument is this, or has this flag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    /// The other argument.
    pub argument: &'static str,
    /// What it has to be or hold.
    pub value: &'static str,
    /// It has to hold it.
    pub is_flag: bool,
}

/// What an argument is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// It is of no use here, and isn't said.
    Hidden,
    /// A number with a sign.
    Signed,
    /// One without.
    Unsigned,
    /// An address, or bits without names.
    Hex,
    /// Permissions.
    Octal,
    /// A value of a set.
    Set(&'static Set),
    /// A descriptor.
    Fd,
    /// A descriptor of a folder, or that of the process.
    DirFd,
    /// Where memory is.
    Memory(Memory),
}

/// Memory that a call reads or fills.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// It is read.
    pub is_in: bool,
    /// It is filled.
    pub is_out: bool,
    /// What it holds.
    pub form: Form,
    /// How often.
    pub count: Option<Many>,
}

/// What memory holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Text up to a zero.
    String,
    /// The same, a path.
    Path,
    /// A list of strings.
    List,
    /// Any bytes.
    Bytes,
    /// A set of small numbers, a bit each.
    Bits,
    /// An option of a socket: most are an integer.
    Option,
    /// The address of a socket.
    SockAddr,
    /// A message of a socket.
    Message,
    /// A structure.
    Layout(&'static Layout),
}

/// What says how many there are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Many {
    /// An argument.
    Argument(&'static str),
    /// What an argument points at.
    Behind(&'static str),
    /// What the call gives back.
    Result,
    /// It is always this.
    Always(u16),
}

impl Rule {
    /// A line; `None`: it says nothing, or nothing that is known.
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

    /// The rules for an argument of a call, by its name and type.
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
