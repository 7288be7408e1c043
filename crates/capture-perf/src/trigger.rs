//! Events that can trigger a sample besides clocks: software events, tracepoints, functions of programs
//! (uprobes), hardware counters. Named as in perf.
//!
//! A [`Trigger`] holds the numbers for perf_event_open; whether the kernel has such an event is known only when it is
//! opened. Elsewhere: finding a function in its file, which is done by readers of symbols.

use std::ffi::CString;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use perf_event_open_sys::bindings::{PERF_TYPE_HARDWARE, PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT};
use plumb_capture_api::MeasuredEvent;

use crate::attr::Code;
use crate::sys::tracefs::Tracefs;

/// `PERF_COUNT_SW_*` by perf's names. Clocks are not triggers.
const SOFTWARE: [(&str, u64); 8] = [
    (Trigger::PAGE_FAULTS, FAULTS),
    ("context-switches", 3),
    ("cpu-migrations", 4),
    ("minor-faults", 5),
    ("major-faults", 6),
    ("alignment-faults", 7),
    ("emulation-faults", 8),
    ("cgroup-switches", 11),
];

/// The kernel counts a page fault as it starts, when a growing stack has no page yet at its stack pointer, so that not one
/// byte of it can be copied. A handled fault counts again as one of these, so samples are triggered by those.
const FAULTS: u64 = 2;
/// `PERF_COUNT_SW_BPF_OUTPUT`, see [`Trigger::of_measure`].
const OUTPUT: u64 = 10;
const HANDLED_FAULTS: (u64, u64) = (5, 6);

/// `PERF_COUNT_HW_*` by perf's names. Cycles are a clock.
const HARDWARE: [(&str, u64); 9] = [
    ("instructions", 1),
    ("cache-references", 2),
    ("cache-misses", 3),
    ("branches", 4),
    ("branch-misses", 5),
    ("bus-cycles", 6),
    ("stalled-cycles-frontend", 7),
    ("stalled-cycles-backend", 8),
    ("ref-cycles", 9),
];

/// perf's aliases.
const ALIASES: [(&str, &str); 5] = [
    ("faults", "page-faults"),
    ("cs", "context-switches"),
    ("migrations", "cpu-migrations"),
    ("branch-instructions", "branches"),
    ("cpu-cycles", "cycles"),
];

/// File with the kernel's PMU number for uprobes.
const UPROBES: &str = "/sys/bus/event_source/devices/uprobe/type";

/// An event that can trigger samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    name: String,
    unit: String,
    kind: Kind,
    /// The kernel single-steps each passing.
    is_stepped: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Hardware(u64),
    Software(u64),
    /// ID of the tracepoint in tracefs.
    Tracepoint(u64),
    /// The kernel's number for uprobes, the file, and the offset in it.
    Uprobe(u32, CString, u64),
}

/// The meaning of an event's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// The kernel's timer, with the code that it is restricted to (perf's `:u` and `:k`).
    CpuClock(Option<Code>),
    /// CPU cycles, with the code.
    Cycles(Option<Code>),
    /// Another event, with the code.
    Trigger(Trigger, Option<Code>),
    /// A function whose offset in its file has to be found, for [`Trigger::uprobe`].
    Function {
        /// The file: a path, or the name of a library or program.
        file: String,
        /// Name of the function.
        function: String,
    },
}

/// The reason why an event does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoTrigger {
    /// No event has this name.
    Unknown(String),
    /// No tracepoint has this name; these are others of its group, or all groups if the group does not exist.
    NoTracepoint(String, Vec<String>),
    /// Tracepoints can't be looked up, for this reason.
    NoTracefs(String, String),
    /// This kernel has no uprobes.
    NoUprobes,
    /// A path that can't be passed to a system call.
    BadPath(String),
}

impl fmt::Display for NoTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoTrigger::Unknown(name) => {
                let names =
                    |list: &[(&str, u64)]| list.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" ");
                write!(
                    f,
                    "unknown event `{name}`; known events:\
                     \n  software    cpu-clock {}\
                     \n  hardware    cycles {}\
                     \n  tracepoint  GROUP:NAME, such as syscalls:sys_enter_brk\
                     \n  function    uprobe:FILE:FUNCTION, such as uprobe:libc.so.6:malloc",
                    names(&SOFTWARE),
                    names(&HARDWARE)
                )
            }
            NoTrigger::NoTracepoint(name, similar) if similar.is_empty() => {
                write!(
                    f,
                    "the kernel has no tracepoint `{name}`; for a list: /sys/kernel/tracing/available_events"
                )
            }
            NoTrigger::NoTracepoint(name, similar) => {
                write!(f, "the kernel has no tracepoint `{name}`; similar names:\n  {}", similar.join("\n  "))
            }
            NoTrigger::NoTracefs(name, why) => write!(
                f,
                "cannot look up tracepoint {name}: {why}\
                 \n  do:       run as root, or once: sudo mount -t tracefs -o mode=755 tracefs /sys/kernel/tracing"
            ),
            NoTrigger::NoUprobes => write!(
                f,
                "cannot sample calls of functions: this kernel has no uprobes ({UPROBES} is missing; CONFIG_UPROBE_EVENTS)"
            ),
            NoTrigger::BadPath(path) => write!(f, "{path}: not a valid path of a file"),
        }
    }
}

impl std::error::Error for NoTrigger {}

impl Named {
    /// Parses an event name, as after `perf record -e`.
    pub fn parse(text: &str) -> Result<Self, NoTrigger> {
        if let Some((file, function)) = text.strip_prefix("uprobe:").and_then(|rest| rest.rsplit_once(':')) {
            // In `a::b` the last `::` belongs to the function.
            let (file, function) = split_function(file, function);
            return Ok(Named::Function { file, function });
        }
        let (name, code) = without_modifier(text);
        let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| *name);
        let of =
            |list: &[(&str, u64)]| list.iter().find(|(known, _)| *known == name).map(|&(_, number)| number);
        let kind = match (name, of(&SOFTWARE), of(&HARDWARE)) {
            ("cpu-clock", ..) => return Ok(Named::CpuClock(code)),
            ("cycles", ..) => return Ok(Named::Cycles(code)),
            (_, Some(number), _) => Kind::Software(number),
            (_, _, Some(number)) => Kind::Hardware(number),
            _ => return tracepoint(text).map(|trigger| Named::Trigger(trigger, None)),
        };
        Ok(Named::Trigger(Trigger::of(name, kind), code))
    }
}

/// `FILE:FUNC` was split at the last colon, which is wrong for `FILE:a::b`.
fn split_function(file: &str, function: &str) -> (String, String) {
    match file.split_once(':') {
        Some((file, rest)) => (file.into(), format!("{rest}:{function}")),
        None => (file.into(), function.into()),
    }
}

/// An event without perf's `:u` or `:k`, and the code that these select.
fn without_modifier(text: &str) -> (&str, Option<Code>) {
    match text.split_once(':') {
        Some((name, "u")) => (name, Some(Code::User)),
        Some((name, "k")) => (name, Some(Code::Kernel)),
        Some((name, "uk" | "ku")) => (name, Some(Code::All)),
        _ => (text, None),
    }
}

fn tracepoint(text: &str) -> Result<Trigger, NoTrigger> {
    let Some((group, name)) = text.split_once(':') else { return Err(NoTrigger::Unknown(text.into())) };
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    if !is_word(group) || !is_word(name) {
        return Err(NoTrigger::Unknown(text.into()));
    }
    let tracefs = Tracefs::open().map_err(|error| NoTrigger::NoTracefs(text.into(), error.to_string()))?;
    let events = tracefs.path().join("events");
    let id = match fs::read_to_string(events.join(group).join(name).join("id")) {
        Ok(id) => id,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(NoTrigger::NoTracepoint(text.into(), similar(&events, group, name)));
        }
        Err(error) => return Err(NoTrigger::NoTracefs(text.into(), error.to_string())),
    };
    let id =
        id.trim().parse().map_err(|_| NoTrigger::NoTracefs(text.into(), "its id is no number".into()))?;
    Ok(Trigger::of(text, Kind::Tracepoint(id)))
}

/// Tracepoints of the group with similar names; similar groups, if the group does not exist.
fn similar(events: &Path, group: &str, name: &str) -> Vec<String> {
    let names = |folder: &Path| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.path().is_dir())
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect()
    };
    let in_group = names(&events.join(group));
    let wanted = if in_group.is_empty() { group } else { name };
    let begin = |text: &str| text.chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
    let part = |text: &str| wanted.rsplit('_').next().is_some_and(|end| end.len() > 2 && text.contains(end));
    let mut all: Vec<(usize, String)> = if in_group.is_empty() { names(events) } else { in_group.clone() }
        .into_iter()
        .map(|text| (begin(&text) + if part(&text) { 4 } else { 0 }, text))
        .filter(|(likeness, _)| *likeness > 2)
        .collect();
    all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let before = if in_group.is_empty() { String::new() } else { format!("{group}:") };
    let after = if in_group.is_empty() { ":…" } else { "" };
    all.into_iter().take(5).map(|(_, text)| format!("{before}{text}{after}")).collect()
}

impl Trigger {
    fn of(name: &str, kind: Kind) -> Self {
        Self { name: name.into(), unit: name.into(), kind, is_stepped: false }
    }

    /// The passing of the instruction at `offset` of a file; `name` is what the event is called, `is_stepped` whether the kernel single-steps
    /// that instruction.
    pub fn uprobe(name: &str, file: &Path, offset: u64, is_stepped: bool) -> Result<Self, NoTrigger> {
        let kind = fs::read_to_string(UPROBES).ok().and_then(|text| text.trim().parse().ok());
        let kind = kind.ok_or(NoTrigger::NoUprobes)?;
        let path = CString::new(file.as_os_str().as_bytes())
            .map_err(|_| NoTrigger::BadPath(file.display().to_string()))?;
        Ok(Self { is_stepped, ..Self::of(name, Kind::Uprobe(kind, path, offset)) })
    }

    /// Name of [`Trigger::page_faults`].
    pub const PAGE_FAULTS: &str = "page-faults";

    /// The page-fault event.
    pub fn page_faults() -> Self {
        Self::of(Self::PAGE_FAULTS, Kind::Software(FAULTS))
    }

    /// An event that a program of a measurement triggers (`PERF_COUNT_SW_BPF_OUTPUT`) instead of the kernel.
    pub(crate) fn of_measure(event: MeasuredEvent) -> Self {
        Self { unit: event.unit.into(), ..Self::of(event.name, Kind::Software(OUTPUT)) }
    }

    /// Whether this is [`Trigger::of_measure`].
    pub(crate) fn is_measure(&self) -> bool {
        self.kind == Kind::Software(OUTPUT)
    }

    /// Name as perf prints it; for a uprobe as given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a message on the cost of a single-stepped probe; `None`: the trigger is not such a probe.
    pub(crate) fn cost(&self) -> Option<String> {
        self.is_stepped.then(|| {
            format!(
                "{}: the kernel single-steps this function's first instruction, which costs each call several times what other probes do \
                 (up to 10 us); none that it emulates comes before the first branch",
                self.name
            )
        })
    }

    /// Unit of the samples' counts.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// Whether every occurrence may matter: true for a tracepoint or function that the user has named.
    pub(crate) fn is_place(&self) -> bool {
        matches!(self.kind, Kind::Tracepoint(_) | Kind::Uprobe(..))
    }

    /// The tracepoint's name, `GROUP:NAME`; `None` for other events.
    pub(crate) fn tracepoint(&self) -> Option<&str> {
        matches!(self.kind, Kind::Tracepoint(_)).then_some(&self.name)
    }

    /// Whether it is a hardware counter.
    pub(crate) fn is_hardware(&self) -> bool {
        matches!(self.kind, Kind::Hardware(_))
    }

    /// Whether it only happens in the kernel, and never in user code.
    pub(crate) fn is_in_kernel(&self) -> bool {
        matches!(self.kind, Kind::Tracepoint(_) | Kind::Software(3 | 4 | 11))
    }

    /// Whether it requires privileges that users lack even for their own processes.
    pub(crate) fn is_privileged(&self) -> bool {
        self.is_place()
    }

    /// The config of a second perf event of the same type that is part of it, if any.
    pub(crate) fn other_part(&self) -> Option<u64> {
        (self.kind == Kind::Software(FAULTS)).then_some(HANDLED_FAULTS.1)
    }

    /// The fields of `struct perf_event_attr`: type, config, and for a uprobe the address of the path, which belongs to this
    /// value, and the offset in the file.
    pub(crate) fn numbers(&self) -> (u32, u64, Option<(u64, u64)>) {
        match &self.kind {
            Kind::Software(FAULTS) => (PERF_TYPE_SOFTWARE, HANDLED_FAULTS.0, None),
            Kind::Hardware(number) => (PERF_TYPE_HARDWARE, *number, None),
            Kind::Software(number) => (PERF_TYPE_SOFTWARE, *number, None),
            Kind::Tracepoint(id) => (PERF_TYPE_TRACEPOINT, *id, None),
            Kind::Uprobe(kind, path, offset) => {
                (*kind, 0, Some((path.as_ptr().expose_provenance() as u64, *offset)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_perfs() {
        let software = |text: &str| match Named::parse(text) {
            Ok(Named::Trigger(trigger, code)) => (trigger.name().to_owned(), trigger.numbers().1, code),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(software("page-faults"), ("page-faults".into(), 5, None));
        assert_eq!(software("faults:u"), ("page-faults".into(), 5, Some(Code::User)));
        assert_eq!(software("major-faults:k"), ("major-faults".into(), 6, Some(Code::Kernel)));
        assert_eq!(software("cs"), ("context-switches".into(), 3, None));
        assert_eq!(software("branch-misses"), ("branch-misses".into(), 5, None));
        assert_eq!(Named::parse("cpu-clock"), Ok(Named::CpuClock(None)));
        assert_eq!(Named::parse("cpu-cycles:u"), Ok(Named::Cycles(Some(Code::User))));
        assert!(matches!(Named::parse("nonsense"), Err(NoTrigger::Unknown(_))));
        assert!(matches!(Named::parse("../x:id"), Err(NoTrigger::Unknown(_))), "no path comes out of a name");
    }

    #[test]
    fn a_function_may_have_colons() {
        let function = |text: &str| match Named::parse(text) {
            Ok(Named::Function { file, function }) => (file, function),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(function("uprobe:libc.so.6:malloc"), ("libc.so.6".into(), "malloc".into()));
        assert_eq!(function("uprobe:./a:ns::Type::f"), ("./a".into(), "ns::Type::f".into()));
        assert!(Named::parse("uprobe:malloc").is_err(), "it lacks the file");
    }

    #[test]
    fn an_unknown_event_is_told_what_there_is() {
        let text = NoTrigger::Unknown("page-fault".into()).to_string();
        for word in ["page-faults", "instructions", "syscalls:sys_enter_brk", "uprobe:FILE:FUNCTION"] {
            assert!(text.contains(word), "{text}");
        }
        let text = NoTrigger::NoTracefs("a:b".into(), "Permission denied".into()).to_string();
        assert!(text.contains("sudo mount -t tracefs"), "{text}");
    }
}
