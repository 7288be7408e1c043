//! Names of the descriptors of processes, tracked through the calls that open, duplicate and close them. Descriptors opened
//! before the trace are looked up in the system.
//!
//! A path is the one passed to the call, made absolute; symbolic links are not resolved. A lookup returns the state at that time,
//! which may be slightly later than the call. Elsewhere: the lookup ([`Ask`]).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;

use crate::decode::socket_address;
use crate::sets::Set;
use crate::{Abi, CallEnd, Signature, SystemCall, number};

/// Looks up descriptors in the system. Answers may be wrong or missing once a process has gone on or ended.
///
/// Asked only for descriptors and directories that no traced call explains. An implementor need not remember an answer, returns `None` for
/// what it cannot read, and does not wait. Names are as the process chose them: whoever shows them escapes them.
///
/// Example: `DescriptorLinks` in `plumb-call-watch`, which reads `/proc`.
pub trait Ask {
    /// Current name of a descriptor.
    fn descriptor(&mut self, pid: u32, fd: i32) -> Option<String>;
    /// Current working directory of a process.
    fn folder(&mut self, pid: u32) -> Option<String>;
}

/// Effect of a call on descriptors. Numbers are argument indices.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// Returns an opened file, given by its directory descriptor, path and flags.
    Opens { folder: Option<usize>, path: usize, flags: Option<usize> },
    /// Returns an anonymous file of this name, with these flags.
    Is(&'static str, Option<usize>),
    /// Returns a socket.
    Socket,
    /// Returns an accepted connection, with these flags.
    Accepts(Option<usize>),
    /// Stores two descriptors at the address in an argument.
    Pair(&'static str, Option<usize>),
    /// Returns a memory file with the name in the first argument.
    Memory,
    /// Returns a descriptor of a process.
    Process,
    /// Gives a socket a local or remote address.
    Address { remote: bool },
    /// Returns a duplicate.
    Copies { flags: Option<usize> },
    /// Depends on the command.
    Fcntl,
    /// Closes one descriptor.
    Closes,
    /// Closes a range of descriptors.
    ClosesRange,
    /// Changes the working directory, given by a path or a descriptor.
    Enters { by_path: bool },
    /// Returns a new process.
    Forks,
    /// Executes another program.
    Execs,
    /// Ends the process.
    Ends,
}

/// Calls with an effect on descriptors.
const EFFECTS: [(&str, Effect); 42] = [
    ("open", Effect::Opens { folder: None, path: 0, flags: Some(1) }),
    ("openat", Effect::Opens { folder: Some(0), path: 1, flags: Some(2) }),
    ("openat2", Effect::Opens { folder: Some(0), path: 1, flags: None }),
    ("creat", Effect::Opens { folder: None, path: 0, flags: None }),
    ("open_tree", Effect::Opens { folder: Some(0), path: 1, flags: Some(2) }),
    ("socket", Effect::Socket),
    ("accept", Effect::Accepts(None)),
    ("accept4", Effect::Accepts(Some(3))),
    ("bind", Effect::Address { remote: false }),
    ("connect", Effect::Address { remote: true }),
    ("socketpair", Effect::Pair("socket", Some(1))),
    ("pipe", Effect::Pair("pipe", None)),
    ("pipe2", Effect::Pair("pipe", Some(1))),
    ("memfd_create", Effect::Memory),
    ("pidfd_open", Effect::Process),
    ("epoll_create", Effect::Is("epoll", None)),
    ("epoll_create1", Effect::Is("epoll", Some(0))),
    ("eventfd", Effect::Is("eventfd", None)),
    ("eventfd2", Effect::Is("eventfd", Some(1))),
    ("signalfd", Effect::Is("signalfd", None)),
    ("signalfd4", Effect::Is("signalfd", Some(3))),
    ("timerfd_create", Effect::Is("timerfd", Some(1))),
    ("inotify_init", Effect::Is("inotify", None)),
    ("inotify_init1", Effect::Is("inotify", Some(0))),
    ("fanotify_init", Effect::Is("fanotify", None)),
    ("perf_event_open", Effect::Is("perf_event", None)),
    ("userfaultfd", Effect::Is("userfaultfd", Some(0))),
    ("io_uring_setup", Effect::Is("io_uring", None)),
    ("dup", Effect::Copies { flags: None }),
    ("dup2", Effect::Copies { flags: None }),
    ("dup3", Effect::Copies { flags: Some(2) }),
    ("fcntl", Effect::Fcntl),
    ("close", Effect::Closes),
    ("close_range", Effect::ClosesRange),
    ("chdir", Effect::Enters { by_path: true }),
    ("fchdir", Effect::Enters { by_path: false }),
    ("fork", Effect::Forks),
    ("vfork", Effect::Forks),
    ("clone", Effect::Forks),
    ("clone3", Effect::Forks),
    ("execve", Effect::Execs),
    ("exit_group", Effect::Ends),
];

/// Calls that must be traced, in addition to the requested ones, to track descriptors.
pub fn tracked() -> impl Iterator<Item = &'static str> {
    EFFECTS.iter().map(|(name, _)| *name)
}

/// Most processes that are tracked at a time; the end of some is not seen.
const MOST: usize = 8192;

/// An open descriptor.
#[derive(Clone, Debug)]
struct Open {
    name: String,
    /// Closed by an exec (`O_CLOEXEC`).
    until_exec: bool,
}

/// Tracked state of a process.
#[derive(Clone, Debug, Default)]
struct Process {
    /// `None`: the descriptor is closed, or a lookup found nothing.
    open: HashMap<i32, Option<Open>>,
    folder: Option<String>,
}

/// Tracked processes by process id.
#[derive(Debug, Default)]
struct Processes(HashMap<u32, Process>);

impl Processes {
    /// The state of a process. Drops all states if there are too many.
    fn of(&mut self, pid: u32) -> &mut Process {
        if self.0.len() >= MOST && !self.0.contains_key(&pid) {
            self.0.clear();
        }
        self.0.entry(pid).or_default()
    }
}

/// The descriptors of all processes.
pub struct Descriptors {
    processes: Processes,
    effects: HashMap<u32, Effect>,
    ask: Box<dyn Ask>,
}

impl Descriptors {
    /// Starts with no known descriptors.
    pub fn new(ask: Box<dyn Ask>) -> Self {
        let native = |name| number(Abi::NATIVE, name);
        let effects = EFFECTS.iter().filter_map(|(name, effect)| Some((native(name)?, *effect))).collect();
        Self { processes: Processes::default(), effects, ask }
    }

    /// Forgets everything, because calls were missed.
    pub fn forget(&mut self) {
        self.processes.0.clear();
    }

    /// Sets a descriptor that was found before the process's calls were traced.
    pub fn learn(&mut self, pid: u32, fd: i32, name: String, until_exec: bool) {
        self.set(pid, fd, name, until_exec);
    }

    /// Sets the working directory in which a process was found.
    pub fn learn_folder(&mut self, pid: u32, folder: String) {
        self.processes.of(pid).folder = Some(folder);
    }

    /// Appends the name of a descriptor in angle brackets, if it is known.
    pub fn write(&mut self, pid: u32, fd: i32, out: &mut String) {
        if let Some(name) = self.name(pid, fd) {
            out.push('<');
            // A path may contain control characters.
            out.extend(name.chars().map(|one| if one.is_control() { '\u{fffd}' } else { one }));
            out.push('>');
        }
    }

    /// Name of a descriptor.
    pub fn name(&mut self, pid: u32, fd: i32) -> Option<&str> {
        let process = self.processes.of(pid);
        let open = match process.open.entry(fd) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let name = self.ask.descriptor(pid, fd);
                place.insert(name.map(|name| Open { name, until_exec: false }))
            }
        };
        open.as_ref().map(|open| &open.name[..])
    }

    fn set(&mut self, pid: u32, fd: i32, name: String, until_exec: bool) {
        self.processes.of(pid).open.insert(fd, Some(Open { name, until_exec }));
    }

    /// Applies the effect of a completed call.
    pub fn apply(&mut self, call: &SystemCall<'_>, signature: &Signature) {
        if call.abi != Abi::NATIVE {
            return;
        }
        let Some(&effect) = self.effects.get(&call.number) else { return };
        if call.end == CallEnd::ThreadEnded && matches!(effect, Effect::Ends) {
            self.processes.0.remove(&call.pid);
        }
        let Some(value) = call.value() else { return };
        let fd = value as i32;
        let closes = |flags: Option<usize>| flags.is_some_and(|place| has_cloexec(call.args[place]));
        match effect {
            Effect::Opens { folder, path, flags } => {
                let folder = folder.map(|place| call.args[place] as i32);
                let path = self.absolute(call.pid, folder, &text(call, signature, path));
                self.set(call.pid, fd, path, closes(flags));
            }
            Effect::Is(name, flags) => self.set(call.pid, fd, format!("anon_inode:[{name}]"), closes(flags)),
            Effect::Socket => self.set(call.pid, fd, socket_name(call), closes(Some(1))),
            Effect::Accepts(flags) => self.accept(call, signature, fd, closes(flags)),
            Effect::Pair(name, flags) => self.pair(call, signature, name, closes(flags)),
            Effect::Memory => {
                self.set(call.pid, fd, format!("/memfd:{}", text(call, signature, 0)), call.args[1] & 1 == 1);
            }
            Effect::Process => self.set(call.pid, fd, format!("process {}", call.args[0]), true),
            Effect::Address { remote } => self.address(call, signature, remote),
            Effect::Copies { flags } => self.copy(call.pid, call.args[0] as i32, fd, closes(flags)),
            Effect::Fcntl => self.fcntl(call, fd),
            Effect::Closes => self.close(call.pid, call.args[0] as i32),
            Effect::ClosesRange => self.close_range(call),
            Effect::Enters { by_path } => self.enter(call, signature, by_path),
            Effect::Forks => self.fork(call.pid, value as u32),
            Effect::Execs => {
                let process = self.processes.of(call.pid);
                process.open.retain(|_, open| open.as_ref().is_some_and(|open| !open.until_exec));
            }
            Effect::Ends => {}
        }
    }

    fn close(&mut self, pid: u32, fd: i32) {
        self.processes.of(pid).open.insert(fd, None);
    }

    fn close_range(&mut self, call: &SystemCall<'_>) {
        let [first, last, flags, ..] = call.args.map(|arg| arg as u32);
        let only_marks = flags & libc::CLOSE_RANGE_CLOEXEC != 0;
        let process = self.processes.of(call.pid);
        for (_, open) in process.open.iter_mut().filter(|(fd, _)| (first..=last).contains(&(**fd as u32))) {
            match open {
                Some(open) if only_marks => open.until_exec = true,
                _ => *open = None,
            }
        }
    }

    fn copy(&mut self, pid: u32, from: i32, to: i32, until_exec: bool) {
        if let Some(name) = self.name(pid, from).map(str::to_owned) {
            self.set(pid, to, name, until_exec);
        }
    }

    fn fcntl(&mut self, call: &SystemCall<'_>, result: i32) {
        let fd = call.args[0] as i32;
        match call.args[1] as i32 {
            libc::F_DUPFD => self.copy(call.pid, fd, result, false),
            libc::F_DUPFD_CLOEXEC => self.copy(call.pid, fd, result, true),
            libc::F_SETFD => {
                let process = self.processes.of(call.pid);
                if let Some(Some(open)) = process.open.get_mut(&fd) {
                    open.until_exec = call.args[2] as i32 & libc::FD_CLOEXEC != 0;
                }
            }
            _ => {}
        }
    }

    fn accept(&mut self, call: &SystemCall<'_>, signature: &Signature, fd: i32, until_exec: bool) {
        let listening = self.name(call.pid, call.args[0] as i32).unwrap_or("socket");
        let mut name = listening.split([' ', '\u{2190}']).next().unwrap_or_default().to_owned();
        let mut peer = String::new();
        if bytes(call, signature, 1).is_some_and(|bytes| socket_address(bytes, &mut peer)) {
            let _ = write!(name, " \u{2190} {peer}");
        }
        self.set(call.pid, fd, name, until_exec);
    }

    fn address(&mut self, call: &SystemCall<'_>, signature: &Signature, remote: bool) {
        let fd = call.args[0] as i32;
        let mut address = String::new();
        if !bytes(call, signature, 1).is_some_and(|bytes| socket_address(bytes, &mut address)) {
            return;
        }
        let Some(known) = self.name(call.pid, fd) else { return };
        let (bound, _) = known.split_once(" \u{2192}").unwrap_or((known, ""));
        let name = match remote {
            true => format!("{bound} \u{2192} {address}"),
            false => format!("{} {address}", bound.split(' ').next().unwrap_or_default()),
        };
        let process = self.processes.of(call.pid);
        if let Some(Some(open)) = process.open.get_mut(&fd) {
            open.name = name;
        }
    }

    fn pair(&mut self, call: &SystemCall<'_>, signature: &Signature, name: &str, until_exec: bool) {
        let place = if name == "socket" { 3 } else { 0 };
        let Some(bytes) = bytes(call, signature, place) else { return };
        for fd in bytes.as_chunks::<4>().0.iter().take(2) {
            self.set(call.pid, i32::from_ne_bytes(*fd), name.to_owned(), until_exec);
        }
    }

    fn enter(&mut self, call: &SystemCall<'_>, signature: &Signature, by_path: bool) {
        let folder = if by_path {
            self.absolute(call.pid, None, &text(call, signature, 0))
        } else {
            self.name(call.pid, call.args[0] as i32).unwrap_or_default().to_owned()
        };
        self.processes.of(call.pid).folder = Some(folder);
    }

    /// A child process starts with a copy of its parent's descriptors. A thread shares them.
    fn fork(&mut self, parent: u32, child: u32) {
        if let Some(process) = self.processes.0.get(&parent).cloned() {
            self.processes.0.entry(child).or_insert(process);
        }
    }

    /// Makes a path absolute.
    fn absolute(&mut self, pid: u32, folder: Option<i32>, path: &str) -> String {
        if path.starts_with('/') {
            return normal(path);
        }
        let begin = match folder.filter(|&fd| fd != libc::AT_FDCWD) {
            Some(fd) => self.name(pid, fd).map(str::to_owned),
            None => {
                let process = self.processes.of(pid);
                if process.folder.is_none() {
                    process.folder = self.ask.folder(pid);
                }
                process.folder.clone()
            }
        };
        match begin {
            Some(begin) if path.is_empty() => begin,
            Some(begin) => normal(&format!("{begin}/{path}")),
            None => path.to_owned(),
        }
    }
}

/// Removes `.`, `..` and double slashes from a path.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Tests for `O_CLOEXEC`, which equals `SOCK_CLOEXEC`, `EFD_CLOEXEC` and similar flags.
fn has_cloexec(flags: u64) -> bool {
    flags & libc::O_CLOEXEC as u64 != 0
}

fn bytes<'a>(call: &'a SystemCall<'_>, signature: &Signature, place: usize) -> Option<&'a [u8]> {
    let takes = signature.takes_of(place);
    takes.iter().rev().flatten().find_map(|&take| call.piece(take)).map(|piece| piece.bytes)
}

fn text(call: &SystemCall<'_>, signature: &Signature, place: usize) -> String {
    bytes(call, signature, place)
        .map_or_else(|| "?".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned())
}

fn socket_name(call: &SystemCall<'_>) -> String {
    let [family, kind, ..] = call.args.map(|arg| arg as i32);
    match (family, kind & 0xf) {
        (libc::AF_INET, libc::SOCK_STREAM) => "TCP".into(),
        (libc::AF_INET, libc::SOCK_DGRAM) => "UDP".into(),
        (libc::AF_INET6, libc::SOCK_STREAM) => "TCPv6".into(),
        (libc::AF_INET6, libc::SOCK_DGRAM) => "UDPv6".into(),
        _ => {
            let mut name = String::new();
            Set::find("family").into_iter().for_each(|set| set.write(family as u64, 32, &mut name));
            name.strip_prefix("AF_").map(str::to_owned).unwrap_or(name)
        }
    }
}
