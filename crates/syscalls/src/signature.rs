//! The arguments of a call, named as in the running kernel, and their kinds.
//!
//! The kernel describes its calls in tracefs (events/syscalls/sys_enter_NAME/format). A call without a description is
//! unknown, and its arguments are six numbers.

use crate::kinds::{Condition, Form, Kind, Many, Memory, Rule};
use crate::{At, Count, Take, What};

/// Calls whose name in the kernel's descriptions differs from the one in its system call table.
const OTHER_NAMES: [(&str, &str); 6] = [
    ("stat", "newstat"),
    ("fstat", "newfstat"),
    ("lstat", "newlstat"),
    ("uname", "newuname"),
    ("sendfile", "sendfile64"),
    ("umount2", "umount"),
];
/// Most pieces of memory per call.
const MOST_TAKES: usize = 6;
/// Byte limits of a path, other strings, socket addresses, socket options, and structures.
const PATH_BYTES: u16 = 1024;
const STRING_BYTES: u16 = 256;
const SOCKADDR_BYTES: u16 = 128;
const OPTION_BYTES: u16 = 64;
const STRUCTURE_BYTES: u16 = 1024;
/// Most elements that are copied of a list of structures.
const ELEMENTS: u16 = 16;
/// Offsets in a message (`struct user_msghdr`): the address, its length, the parts, and their number.
const MESSAGE: [u16; 4] = [0, 8, 16, 24];

/// The arguments and the result of a call.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// The arguments.
    pub(crate) params: Vec<Param>,
    /// Kinds of the result.
    pub(crate) result: Vec<Choice>,
    takes: Vec<Take>,
    is_known: bool,
}

/// An argument.
#[derive(Clone, Debug)]
pub(crate) struct Param {
    /// Name.
    pub name: String,
    /// Number of significant bits.
    pub bits: u32,
    /// Possible kinds: the first whose condition holds applies.
    pub choices: Vec<Choice>,
}

/// Kind of an argument if a condition holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    /// Index of another argument, the value it must have, and whether the value is a flag that must be set.
    pub condition: Option<(usize, u64, bool)>,
    /// The kind.
    pub kind: Kind,
    /// Indices of the takes at the begin of the call and at its end.
    pub takes: [Option<usize>; 2],
}

impl Signature {
    /// Name of a call's description in tracefs: the part of the directory name after `sys_enter_`.
    pub fn described_as(call: &str) -> &str {
        OTHER_NAMES.iter().find(|(name, _)| *name == call).map_or(call, |(_, other)| other)
    }

    /// Signature of a call that the kernel does not describe.
    pub const fn unknown() -> Self {
        Self { params: Vec::new(), result: Vec::new(), takes: Vec::new(), is_known: false }
    }

    /// Whether the kernel does not describe the call.
    pub fn is_unknown(&self) -> bool {
        !self.is_known
    }

    /// Parses a description. `bytes`: how much of a buffer to copy, at most 1,024.
    pub fn new(call: &str, format: &str, bytes: u16) -> Self {
        let fields: Vec<(&str, String)> = format.lines().filter_map(field).collect();
        let mut signature = Self { is_known: true, ..Self::default() };
        let sets: Vec<Option<&'static crate::sets::Set>> =
            fields.iter().map(|(name, c_type)| set_of(call, name, c_type)).collect();
        let find = |name: &str| fields.iter().position(|(known, _)| *known == name);
        let resolve = |condition: Condition| {
            let place = find(condition.argument)?;
            let value = sets.get(place)?.as_ref()?.value(condition.value)?;
            Some((place, value, condition.is_flag))
        };
        for (place, (name, c_type)) in fields.iter().enumerate().take(6) {
            let (bits, kind) = of_type(name, c_type);
            let mut choices = Vec::new();
            for rule in Rule::of(call, name, c_type) {
                let condition = match rule.condition.map(resolve) {
                    Some(None) => continue,
                    other => other.flatten(),
                };
                let takes = signature.take(rule.kind, place as u8, bytes, &find);
                choices.push(Choice { condition, kind: rule.kind, takes });
                if condition.is_none() {
                    break;
                }
            }
            if choices.last().is_none_or(|choice| choice.condition.is_some()) {
                choices.push(Choice { condition: None, kind, takes: [None; 2] });
            }
            signature.params.push(Param { name: (*name).to_owned(), bits, choices });
        }
        for rule in Rule::of(call, "result", "") {
            let condition = rule.condition.map(resolve);
            if condition != Some(None) {
                let condition = condition.flatten();
                signature.result.push(Choice { condition, kind: rule.kind, takes: [None; 2] });
            }
        }
        signature
    }

    /// Memory to copy for such a call.
    pub fn takes(&self) -> &[Take] {
        &self.takes
    }

    /// Whether an argument or the result is a descriptor.
    pub fn has_descriptor(&self) -> bool {
        let all = self.params.iter().flat_map(|param| &param.choices).chain(&self.result);
        let is_poll = |memory: Memory| matches!(memory.form, Form::Layout(layout) if layout.name == "pollfd");
        all.into_iter().any(|choice| match choice.kind {
            Kind::Fd | Kind::DirFd => true,
            Kind::Memory(memory) => is_poll(memory),
            _ => false,
        })
    }

    /// Whether an argument is a path.
    pub fn has_path(&self) -> bool {
        let mut all = self.params.iter().flat_map(|param| &param.choices);
        all.any(|choice| matches!(choice.kind, Kind::Memory(Memory { form: Form::Path, .. })))
    }

    /// Index of the argument with this name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|param| param.name == name)
    }

    /// Indices of the takes of the memory that an argument points to, before and after the call.
    pub(crate) fn takes_of(&self, place: usize) -> [Option<usize>; 2] {
        self.params
            .get(place)
            .and_then(|param| param.choices.first())
            .map_or([None; 2], |choice| choice.takes)
    }

    /// Adds takes for an argument. Returns their indices at the begin of the call and at its end.
    fn take(
        &mut self,
        kind: Kind,
        place: u8,
        bytes: u16,
        find: &impl Fn(&str) -> Option<usize>,
    ) -> [Option<usize>; 2] {
        let Kind::Memory(memory) = kind else { return [None; 2] };
        let argument = |name: &str| find(name).and_then(|place| u8::try_from(place).ok());
        let count = match memory.count {
            None => Some(Count::One),
            Some(Many::Argument(name)) => argument(name).map(Count::Argument),
            Some(Many::Behind(name)) => argument(name).map(Count::Behind),
            Some(Many::Result) => Some(Count::Result),
            Some(Many::Always(_)) => Some(Count::One),
        };
        let Some(count) = count else { return [None; 2] };
        let elements = |size: u16, most: u16| What::Elements { size, count, most };
        let what = match memory.form {
            Form::Path => What::String { most: PATH_BYTES },
            Form::String => What::String { most: STRING_BYTES },
            Form::List => What::List,
            Form::Bytes => elements(1, bytes),
            // The size of the kernel's own sets of descriptors and CPUs.
            Form::Bits => What::Elements { size: 128, count: Count::One, most: 128 },
            Form::Option => elements(1, OPTION_BYTES),
            Form::SockAddr => elements(1, SOCKADDR_BYTES),
            Form::Message => elements(size_of::<libc::msghdr>() as u16, STRUCTURE_BYTES),
            Form::Layout(layout) => {
                let size =
                    layout.size as u16 * if let Some(Many::Always(many)) = memory.count { many } else { 1 };
                elements(size, size.saturating_mul(ELEMENTS).min(STRUCTURE_BYTES / size.max(1) * size))
            }
        };
        let mut takes = [None; 2];
        for (at_end, wanted) in [(false, memory.is_in), (true, memory.is_out)] {
            if !wanted {
                continue;
            }
            let parent = self.add(Take { at: At::Argument(place), what, at_end });
            takes[usize::from(at_end)] = parent;
            if let (Form::Message, Some(take)) = (memory.form, parent) {
                let [name, name_bytes, parts, many] = MESSAGE;
                let field = |at, size, count, most| Take {
                    at: At::Field { take: take as u8, place: at },
                    what: What::Elements { size, count: Count::Field(count), most },
                    at_end,
                };
                self.add(field(name, 1, name_bytes, SOCKADDR_BYTES));
                self.add(field(parts, size_of::<libc::iovec>() as u16, many, 8 * ELEMENTS));
            }
        }
        takes
    }

    fn add(&mut self, take: Take) -> Option<usize> {
        if let Some(known) = self.takes.iter().position(|known| *known == take) {
            return Some(known);
        }
        if self.takes.len() == MOST_TAKES {
            return None;
        }
        self.takes.push(take);
        Some(self.takes.len() - 1)
    }
}

/// The set that an argument belongs to.
fn set_of(call: &str, name: &str, c_type: &str) -> Option<&'static crate::sets::Set> {
    Rule::of(call, name, c_type).find_map(|rule| match rule.kind {
        Kind::Set(set) => Some(set),
        _ => None,
    })
}

/// Parses an argument in a line of a description: its name, and its type without spaces and `const`.
fn field(line: &str) -> Option<(&str, String)> {
    let declared = line.trim().strip_prefix("field:")?.split(';').next()?;
    let (c_type, name) = declared.rsplit_once(' ')?;
    if name.starts_with("common_") || name == "__syscall_nr" {
        return None;
    }
    let words: Vec<&str> = c_type.split(' ').map(|word| word.trim_end_matches("const")).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    Some((name, words.join("_").replace("_*", "*")))
}

/// Number of bits of a type, and the default kind of its arguments.
fn of_type(name: &str, c_type: &str) -> (u32, Kind) {
    match c_type {
        "int" | "pid_t" | "clockid_t" | "key_t" | "mqd_t" | "timer_t" | "key_serial_t" | "__s32"
        | "rwf_t" => (32, Kind::Signed),
        "unsigned" | "unsigned_int" | "u32" | "__u32" | "uid_t" | "gid_t" | "qid_t" => (32, Kind::Unsigned),
        "umode_t" => (16, Kind::Octal),
        "long" | "off_t" | "loff_t" | "__kernel_old_time_t" => (64, Kind::Signed),
        "size_t" => (64, Kind::Unsigned),
        _ if c_type.contains('*') => (64, Kind::Hex),
        _ => {
            let counts = ["len", "size", "count", "nr_", "off", "pages", "max", "seg", "cnt", "num"];
            (64, if counts.iter().any(|part| name.contains(part)) { Kind::Unsigned } else { Kind::Hex })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENAT: &str = "name: sys_enter_openat
ID: 782
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;

	field:int __syscall_nr;	offset:8;	size:4;	signed:1;
	field:int dfd;	offset:16;	size:8;	signed:0;
	field:const char * filename;	offset:24;	size:8;	signed:0;
	field:int flags;	offset:32;	size:8;	signed:0;
	field:umode_t mode;	offset:40;	size:8;	signed:0;

print fmt: \"dfd: 0x%08lx\", ((unsigned long)(REC->dfd))
";

    #[test]
    fn a_description_is_read() {
        let signature = Signature::new("openat", OPENAT, 32);
        let names: Vec<&str> = signature.params.iter().map(|param| &param.name[..]).collect();
        assert_eq!(names, ["dfd", "filename", "flags", "mode"]);
        assert!(signature.has_path() && signature.has_descriptor());
        let path = Take { at: At::Argument(1), what: What::String { most: 1024 }, at_end: false };
        assert_eq!(signature.takes(), [path]);
        assert_eq!(signature.params[3].choices.len(), 3, "a mode counts with two flags only");
    }

    #[test]
    fn types_are_written_without_blanks() {
        assert_eq!(field("field:const char *const * argv;	offset:24;"), Some(("argv", "char**".into())));
        assert_eq!(field("	field:const struct sigaction * act;"), Some(("act", "struct_sigaction*".into())));
        assert_eq!(field("format:"), None);
    }

    #[test]
    fn damaged_descriptions_do_no_harm() {
        for length in (0..OPENAT.len()).filter(|&length| OPENAT.is_char_boundary(length)) {
            Signature::new("openat", &OPENAT[..length], 32);
        }
        Signature::new("openat", &"field:int x;\n".repeat(100), 32);
    }
}
