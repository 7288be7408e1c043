//! What the descriptors of processes are: by the calls that make, copy and close them, and, where those were not seen, by what
//! the system says when it is asked.
//!
//! A path is the one that it was opened by, made absolute: links in it are not followed. What the system says is how things are by
//! then, which may be a little later than the call. Not here: asking ([`Ask`]).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;

use crate::decode::socket_address;
use crate::sets::Set;
use crate::{Abi, CallEnd, Signature, SystemCall, number};

/// Asks the system. Answers may be wrong or none once a process has gone on or ended.
pub trait Ask {
    /// What a descriptor of a process is now.
    fn descriptor(&mut self, pid: u32, fd: i32) -> Option<String>;
    /// The folder that a process is in now.
    fn folder(&mut self, pid: u32) -> Option<String>;
}

/// What a call does to descriptors. Numbers are places of arguments.
#[derive(Clone, Copy, Debug)]
enum Effect {
    /// The result is a file: its folder's descriptor, its path, flags.
    Opens { folder: Option<usize>, path: usize, flags: Option<usize> },
    /// The result is this, with flags at this place.
    Is(&'static str, Option<usize>),
    /// The result is a socket.
    Socket,
    /// The result is a socket that somebody has connected to: flags.
    Accepts(Option<usize>),
    /// Two descriptors are put where this argument points.
    Pair(&'static str, Option<usize>),
    /// The result is memory by the name that is at this place.
    Memory,
    /// The result is a process.
    Process,
    /// A socket is given an address; whether it is the other side's.
    Address { remote: bool },
    /// The result is a copy.
    Copies { flags: Option<usize> },
    /// It depends on the command.
    Fcntl,
    /// One is closed.
    Closes,
    /// Several are.
    ClosesRange,
    /// The process goes to another folder: its path, or else its descriptor.
    Enters { by_path: bool },
    /// The result is a new process.
    Forks,
    /// Another program begins.
    Execs,
    /// The process ends.
    Ends,
}

/// The calls that do something to descriptors.
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

/// Calls that have to be seen, whatever else is asked for, so that descriptors are known.
pub fn tracked() -> impl Iterator<Item = &'static str> {
    EFFECTS.iter().map(|(name, _)| *name)
}

/// Processes that are known at one time. Of some the end is not seen.
const MOST: usize = 8192;

/// A descriptor.
#[derive(Clone, Debug)]
struct Open {
    name: String,
    /// It is closed as another program begins.
    until_exec: bool,
}

/// What is known of a process.
#[derive(Clone, Debug, Default)]
struct Process {
    /// `None`: it is closed, or nothing is known of it though it was asked.
    open: HashMap<i32, Option<Open>>,
    folder: Option<String>,
}

/// Processes by their numbers.
#[derive(Debug, Default)]
struct Processes(HashMap<u32, Process>);

impl Processes {
    /// What is known of one. If there are too many, nothing is any longer.
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
    /// Nothing is known at first.
    pub fn new(ask: Box<dyn Ask>) -> Self {
        let native = |name| number(Abi::native()?, name);
        let effects = EFFECTS.iter().filter_map(|(name, effect)| Some((native(name)?, *effect))).collect();
        Self { processes: Processes::default(), effects, ask }
    }

    /// Forgets everything: calls were missed.
    pub fn forget(&mut self) {
        self.processes.0.clear();
    }

    /// What was found of a process before its calls are seen.
    pub fn learn(&mut self, pid: u32, fd: i32, name: String, until_exec: bool) {
        self.set(pid, fd, name, until_exec);
    }

    /// The folder that a process was found in.
    pub fn learn_folder(&mut self, pid: u32, folder: String) {
        self.processes.of(pid).folder = Some(folder);
    }

    /// Writes what a descriptor is, in brackets, if that is known.
    pub fn write(&mut self, pid: u32, fd: i32, out: &mut String) {
        if let Some(name) = self.name(pid, fd) {
            out.push('<');
            // A path may hold anything.
            out.extend(name.chars().map(|one| if one.is_control() { '\u{fffd}' } else { one }));
            out.push('>');
        }
    }

    /// What a descriptor is.
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

    /// What a call that has ended did to descriptors.
    pub fn apply(&mut self, call: &SystemCall<'_>, signature: &Signature) {
        if Some(call.abi) != Abi::native() {
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

    /// A child begins with what its parent has. A thread shares it.
    fn fork(&mut self, parent: u32, child: u32) {
        if let Some(process) = self.processes.0.get(&parent).cloned() {
            self.processes.0.entry(child).or_insert(process);
        }
    }

    /// A path as it is from the root.
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

/// The path without `.`, `..` and doubled slashes.
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

/// `O_CLOEXEC`, which is `SOCK_CLOEXEC`, `EFD_CLOEXEC` and the others too.
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
