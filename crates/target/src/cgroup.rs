//! A cgroup made for the target, or an existing one: events scoped to it count all that the target forks, and its accounting has
//! their CPU time.
//!
//! A made cgroup is a child of the recorder's own, so that the target keeps its limits. It lives as long as its
//! [`Cgroup`]; one whose recorder was killed is removed by the next recorder: the recorder holds a lock on the
//! directory, which ends with it however it ends, and works across pid namespaces.
//!
//! Documentation: cgroups(7), Documentation/admin-guide/cgroup-v2.rst.

mod controllers;
mod joiners;

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plumb_process::usage::CpuTime;

pub use joiners::Joiners;

/// Prefix of directories made by recorders; the recorder's process ID follows.
const PREFIX: &str = "plumb-";

/// A cgroup that the kernel scopes events to.
#[derive(Debug)]
pub struct Cgroup {
    directory: PathBuf,
    parent: PathBuf,
    /// The open directory: passed to perf_event_open, and locked if the recorder made it.
    handle: File,
    /// CPU time of the cgroup when it was opened; `None`: the recorder made it.
    found_with: Option<CpuTime>,
}

impl Cgroup {
    /// Makes one below the recorder's own cgroup, and removes those of recorders that have ended.
    pub fn create() -> io::Result<Self> {
        let parent = own()?;
        remove_stale(&parent);
        let mut error = io::Error::from(io::ErrorKind::AlreadyExists);
        // Another recorder may mistake the directory for a stale one before it is locked; then this retries.
        for attempt in 0..8 {
            let directory = parent.join(format!("{PREFIX}{}-{attempt}", std::process::id()));
            match fs::create_dir(&directory).and_then(|()| locked(&directory)) {
                Ok(Some(handle)) => return Ok(Self { directory, parent, handle, found_with: None }),
                Ok(None) => {}
                Err(other) if other.kind() == io::ErrorKind::PermissionDenied => return Err(other),
                Err(other) => error = other,
            }
        }
        Err(error)
    }

    /// Opens an existing cgroup, given by its directory or by its name in the hierarchy used by perf events.
    pub fn find(path: &Path) -> Result<Self, NoCgroup> {
        let hierarchy = hierarchy().map_err(NoCgroup::NoHierarchy)?;
        let inside = hierarchy.join(path.strip_prefix("/").unwrap_or(path));
        let found = [path.to_path_buf(), inside].into_iter().find(|path| path.join("cgroup.procs").exists());
        let directory = found.ok_or_else(|| NoCgroup::Missing(path.into(), hierarchy.clone()))?;
        let directory = fs::canonicalize(&directory).map_err(|error| NoCgroup::Refused(directory, error))?;
        if !directory.starts_with(&hierarchy) {
            return Err(NoCgroup::OtherHierarchy(directory, hierarchy));
        }
        let handle = File::open(&directory).map_err(|error| NoCgroup::Refused(directory.clone(), error))?;
        let mut found = Self { parent: hierarchy, directory, handle, found_with: None };
        found.found_with = Some(found.cpu_time().unwrap_or_default());
        Ok(found)
    }

    /// Whether it has been removed.
    pub fn is_gone(&self) -> bool {
        !self.directory.exists()
    }

    /// Returns [`Cgroup::pids`], at least one: for observers that follow processes, not the cgroup.
    ///
    /// # Errors
    /// If there is none.
    pub fn some_pids(&self) -> Result<Vec<u32>, NoCgroup> {
        let pids = self.pids();
        if pids.is_empty() { Err(NoCgroup::Empty(self.directory.clone())) } else { Ok(pids) }
    }

    /// Returns the processes in the cgroup and in those below it.
    pub fn pids(&self) -> Vec<u32> {
        let mut pids: Vec<u32> = Vec::new();
        let mut folders = vec![self.directory.clone()];
        while let Some(folder) = folders.pop() {
            let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            // Processes of another pid namespace show as 0.
            pids.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()).filter(|&pid| pid != 0));
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            folders.extend(entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
        }
        pids
    }

    /// Moves a process into the cgroup, with all its threads.
    pub fn add(&self, pid: u32) -> io::Result<()> {
        add(&self.directory, pid)
    }

    /// Returns the CPU time of all processes that ever were in the cgroup, since it was opened; `None` under cgroup v1, which has no such
    /// account here.
    pub fn cpu_time(&self) -> Option<CpuTime> {
        let used = parse_cpu_stat(&fs::read_to_string(self.directory.join("cpu.stat")).ok()?)?;
        Some(used.since(self.found_with.unwrap_or_default()))
    }

    /// Makes sure that the kernel counts events by this cgroup, which some kernels with cgroups do not. `open` opens an event as a test.
    pub fn count_events(&self, open: impl Fn(BorrowedFd<'_>) -> io::Result<()>) -> io::Result<()> {
        let attempt = || open(self.as_fd());
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
        let root = hierarchy()?;
        let refused = |error: io::Error| {
            io::Error::new(
                error.kind(),
                format!(
                    "the kernel does not count events for the cgroups below {} ({error}); to enable a controller: \
                     echo +pids | sudo tee {}",
                    root.display(),
                    root.join(controllers::ENABLED).display()
                ),
            )
        };
        controllers::set_up(&root).and_then(|()| attempt()).map_err(refused)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.directory
    }
}

impl AsFd for Cgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if self.found_with.is_some() {
            return;
        }
        // If this fails, the next recorder tries again.
        let _ = remove(&self.directory, &self.parent);
    }
}

/// The reason why a cgroup can't be recorded.
#[derive(Debug)]
pub enum NoCgroup {
    /// The hierarchy of cgroups used by perf events is not mounted.
    NoHierarchy(io::Error),
    /// The cgroup does not exist: the requested one, and the hierarchy's root.
    Missing(PathBuf, PathBuf),
    /// The cgroup is not in the hierarchy used by perf events, whose root is the second path.
    OtherHierarchy(PathBuf, PathBuf),
    /// The cgroup can't be opened.
    Refused(PathBuf, io::Error),
    /// The cgroup is empty, but at least one process is required.
    Empty(PathBuf),
}

impl fmt::Display for NoCgroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoCgroup::NoHierarchy(error) => {
                write!(f, "{error}; to mount one: sudo mount -t cgroup2 cgroup2 /sys/fs/cgroup")
            }
            NoCgroup::Missing(path, root) => write!(
                f,
                "{}: no such cgroup, neither as a path nor below {}; the cgroups of a process are in /proc/PID/cgroup, for a \
                 list of all: find {} -type d",
                path.display(),
                root.display(),
                root.display()
            ),
            NoCgroup::OtherHierarchy(path, root) => write!(
                f,
                "{}: perf events use the cgroups below {}, not those of this controller; the cgroup of a process there is in \
                 /proc/PID/cgroup",
                path.display(),
                root.display()
            ),
            NoCgroup::Refused(path, error) => write!(f, "{}: {error}", path.display()),
            NoCgroup::Empty(path) => write!(
                f,
                "{}: there is no process in this cgroup; waits and system calls are seen of those that are in it at the beginning, and of their \
                 children: start one first",
                path.display()
            ),
        }
    }
}

/// The root of the hierarchy used by perf events, as far as it is mounted here.
fn hierarchy() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::parse).collect();
    let found =
        mounts.iter().find(|mount| is_perf_v1(mount)).or_else(|| mounts.iter().find(|mount| is_v2(mount)));
    found.map(|mount| PathBuf::from(unescape(mount.point))).ok_or_else(no_hierarchy)
}

fn is_perf_v1(mount: &Mount<'_>) -> bool {
    mount.kind == "cgroup" && mount.options.split(',').any(|option| option == "perf_event")
}

fn is_v2(mount: &Mount<'_>) -> bool {
    mount.kind == "cgroup2"
}

fn no_hierarchy() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "no cgroup hierarchy for perf events is mounted")
}

/// The recorder's own cgroup in the hierarchy used by perf events.
pub fn own() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let member = fs::read_to_string("/proc/self/cgroup")?;
    find(&mounts, &member).ok_or_else(no_hierarchy)
}

/// The directory of a process' cgroup, from its /proc/PID/mountinfo and /proc/PID/cgroup (both proc(5)): in
/// the perf_event hierarchy of cgroup v1 if that is mounted, as the controller is bound to it then, otherwise in v2.
fn find(mountinfo: &str, member: &str) -> Option<PathBuf> {
    let member_of = |wanted: &str| {
        member.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            controllers.split(',').any(|name| name == wanted).then_some(path)
        })
    };
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
    // cgroup v2 is the line without controllers.
    if let Some(mount) = mounts.iter().find(|mount| is_perf_v1(mount)) {
        return mount.directory(member_of("perf_event")?);
    }
    let path = member_of("")?;
    mounts.iter().filter(|mount| is_v2(mount)).find_map(|mount| mount.directory(path))
}

/// A line of mountinfo.
struct Mount<'a> {
    /// The mounted part of the file system.
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (head, tail) = line.split_once(" - ")?;
        let mut head = head.split(' ').skip(3);
        let (root, point) = (head.next()?, head.next()?);
        let mut tail = tail.split(' ');
        let (kind, _source, options) = (tail.next()?, tail.next()?, tail.next().unwrap_or(""));
        Some(Self { root, point, kind, options })
    }

    /// Returns the directory of the cgroup `path` under this mount; `None` if it is outside of the mounted part.
    fn directory(&self, path: &str) -> Option<PathBuf> {
        let below = Path::new(path).strip_prefix(self.root).ok()?;
        // A cgroup outside of the cgroup namespace shows as /../x.
        let inside = below.components().all(|c| matches!(c, std::path::Component::Normal(_)));
        inside.then(|| Path::new(&unescape(self.point)).join(below))
    }
}

/// Undoes the octal escapes (`\040`) of blanks in mountinfo.
fn unescape(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

fn parse_cpu_stat(text: &str) -> Option<CpuTime> {
    let field = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())?;
        Some(Duration::from_micros(value))
    };
    Some(CpuTime { user: field("user_usec ")?, system: field("system_usec ")? })
}

/// Opens and locks a directory; `None` if another process has the lock, or the directory was removed before it was locked.
fn locked(directory: &Path) -> io::Result<Option<File>> {
    let handle = File::open(directory)?;
    match handle.try_lock() {
        Ok(()) => Ok(directory.exists().then_some(handle)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn add(directory: &Path, pid: u32) -> io::Result<()> {
    // A single write: the kernel takes one process per write.
    fs::OpenOptions::new()
        .write(true)
        .open(directory.join("cgroup.procs"))?
        .write_all(pid.to_string().as_bytes())
}

fn remove_stale(parent: &Path) {
    for directory in ours_in(parent) {
        if let Ok(Some(_lock)) = locked(&directory) {
            let _ = remove(&directory, parent);
        }
    }
}

fn ours_in(parent: &Path) -> Vec<PathBuf> {
    let is_ours = |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.starts_with(PREFIX));
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    entries.filter(|entry| is_ours(&entry.file_name())).map(|entry| entry.path()).collect()
}

/// Moves the remaining processes of a cgroup to its parent, and removes it with the cgroups of recorders that ran inside it.
fn remove(directory: &Path, parent: &Path) -> io::Result<()> {
    let mut result = Ok(());
    // A process may fork between being listed and being moved, and a dying one keeps the cgroup for a moment.
    for attempt in 0..50 {
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        for inner in ours_in(directory) {
            let _ = remove(&inner, directory);
        }
        let left = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
        for pid in left.lines().filter_map(|line| line.parse().ok()) {
            let _ = add(parent, pid);
        }
        result = fs::remove_dir(directory);
        match &result {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) => {}
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEMD: &str = "\
25 30 0:23 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
29 25 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
";
    const HYBRID: &str = "\
31 25 0:27 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755
32 31 0:28 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw
33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:11 - cgroup cgroup rw,cpu,cpuacct
";
    const V1_PERF: &str =
        "34 31 0:30 / /sys/fs/cgroup/perf_event rw shared:12 - cgroup cgroup rw,perf_event\n";

    #[test]
    fn cgroup_v2_is_found_wherever_it_is_mounted() {
        let member = "0::/user.slice/user-0.slice/session-1.scope\n";
        assert_eq!(
            find(SYSTEMD, member),
            Some("/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope".into())
        );
        assert_eq!(find(HYBRID, "3:cpu,cpuacct:/\n0::/\n"), Some("/sys/fs/cgroup/unified".into()));
    }

    #[test]
    fn perf_event_of_cgroup_v1_goes_first() {
        let mounts = [HYBRID, V1_PERF].concat();
        let member = "5:perf_event:/job\n3:cpu,cpuacct:/\n0::/elsewhere\n";
        assert_eq!(find(&mounts, member), Some("/sys/fs/cgroup/perf_event/job".into()));
    }

    #[test]
    fn a_part_of_the_hierarchy_may_be_mounted_at_a_path_with_blanks() {
        let mounts = "40 1 0:26 /docker/abc /my\\040cgroup rw - cgroup2 cgroup rw\n";
        assert_eq!(find(mounts, "0::/docker/abc/x\n"), Some("/my cgroup/x".into()));
        assert_eq!(find(mounts, "0::/other\n"), None, "not under what is mounted");
        assert_eq!(find(SYSTEMD, "0::/../outside\n"), None, "outside of the cgroup namespace");
        assert_eq!(find("", "0::/\n"), None);
    }

    /// As where an initramfs mounts cgroup2 and starts everything in its root.
    #[test]
    fn the_root_of_a_hierarchy_is_a_place_too() {
        let mounts = "28 25 0:25 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";
        assert_eq!(find(mounts, "0::/\n"), Some("/sys/fs/cgroup".into()));
        assert_eq!(find(mounts, "0::/x\n"), Some("/sys/fs/cgroup/x".into()));
    }

    #[test]
    fn a_container_sees_its_own_cgroup_as_the_root() {
        let mounts = "900 880 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw\n";
        assert_eq!(find(mounts, "0::/\n"), Some("/sys/fs/cgroup".into()));
        let host_namespace = "900 880 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(find(host_namespace, "0::/docker/abc\n"), Some("/sys/fs/cgroup".into()));
        assert_eq!(find(host_namespace, "0::/\n"), None, "the mount shows a part that the process is not in");
    }

    #[test]
    fn accounting_is_read() {
        let stat = "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnice_usec 0\n";
        let time = parse_cpu_stat(stat).expect("all fields are there");
        assert_eq!((time.user.as_micros(), time.system.as_micros()), (1000, 500));
        assert_eq!(parse_cpu_stat("nr_periods 0\n"), None);
    }
}
