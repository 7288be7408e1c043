//! Events to sample by the names that users give them, and the file that contains a function.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plumb_capture_perf::{Code, Counter, Named, NoTrigger, Trigger};
use plumb_process::parse_maps;
use plumb_symbolize::NotFound;
use plumb_target::Target;

/// Library directories, besides those in /etc/ld.so.conf.
const LIBRARIES: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// The reason why a name is not an event to sample.
#[derive(Debug)]
pub enum EventError {
    /// The event is there twice.
    Twice(String),
    /// No event has the name, or this machine lacks it.
    Trigger(NoTrigger),
    /// The path of a file can't be resolved.
    Path(String, io::Error),
    /// No file has the name.
    NoFile(String),
    /// The file has no such function: the name of the event, and why.
    Function(String, NotFound),
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice(name) => write!(f, "{name} is given twice: reports show each event by its name"),
            Self::Trigger(error) => error.fmt(f),
            Self::Path(name, error) => write!(f, "{name}: {error}"),
            Self::NoFile(name) => write!(
                f,
                "{name}: no program or library of this name is mapped by the target, in PATH or in the loader's folders; give its \
                 path: uprobe:/PATH/{name}:FUNCTION"
            ),
            Self::Function(name, error) => write!(f, "{name}: {error}"),
        }
    }
}

impl std::error::Error for EventError {}

impl From<NoTrigger> for EventError {
    fn from(error: NoTrigger) -> Self {
        Self::Trigger(error)
    }
}

/// Parses event names: the counter, and the code if the name restricts it. A name may be a list of names, as `-e` takes it. `target`: functions
/// are looked for in the files that it has mapped first.
///
/// # Errors
/// A name is not an event, or is there twice.
pub fn counters(names: &[String], target: &Target) -> Result<Vec<(Counter, Option<Code>)>, EventError> {
    let mut counters: Vec<(Counter, Option<Code>)> = Vec::new();
    for name in names.iter().flat_map(|name| list(name)) {
        let (counter, code) = counter(name, target)?;
        let known = counters.iter().any(|(known, _)| known.name() == counter.name());
        if known {
            return Err(EventError::Twice(counter.name().to_owned()));
        }
        counters.push((counter, code));
    }
    Ok(counters)
}

/// Splits a list in perf's syntax. Function names may contain commas, in brackets (`f<int, int>`) and as `operator,`.
fn list(text: &str) -> Vec<&str> {
    let is_function = text.starts_with("uprobe:");
    let mut depth = 0_u32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'{' | b'[' if is_function => depth += 1,
            b'>' | b')' | b'}' | b']' if is_function => depth = depth.saturating_sub(1),
            b',' if depth == 0 && !(is_function && text[..at].ends_with("operator")) => {
                return [vec![&text[..at]], list(&text[at + 1..])].concat();
            }
            _ => {}
        }
    }
    vec![text]
}

fn counter(name: &str, target: &Target) -> Result<(Counter, Option<Code>), EventError> {
    Ok(match Named::parse(name)? {
        Named::CpuClock(code) => (Counter::CpuClock, code),
        Named::Cycles(code) => (Counter::Cycles, code),
        Named::Trigger(trigger, code) => (Counter::Trigger(Arc::new(trigger)), code),
        Named::Function { file, function } => {
            let path = find_file(&file, target)?;
            let options = plumb_symbolize::Options::default();
            let place = plumb_symbolize::find_function(&path, &function, &options)
                .map_err(|error| EventError::Function(name.to_owned(), error))?;
            let is_stepped = place.step == plumb_symbolize::ProbeStep::Stepped;
            let trigger = Trigger::uprobe(name, &path, place.probe, is_stepped)?;
            (Counter::Trigger(Arc::new(trigger)), None)
        }
    })
}

/// Finds the file called `name`: a path, a file that the target has mapped, a program, or a library.
fn find_file(name: &str, target: &Target) -> Result<PathBuf, EventError> {
    if name.contains('/') {
        return fs::canonicalize(name).map_err(|error| EventError::Path(name.to_owned(), error));
    }
    let found = mapped(name, target)
        .or_else(|| command(name, target))
        .or_else(|| in_folders(name, &library_folders()))
        .or_else(|| in_folders(name, &program_folders()));
    found.ok_or_else(|| EventError::NoFile(name.to_owned()))
}

/// A file of this name that is mapped in the processes to be recorded: the one they really use.
fn mapped(name: &str, target: &Target) -> Option<PathBuf> {
    let Target::Processes(pids) = target else { return None };
    let is_it = |path: &Path| path.file_name() == Some(OsStr::new(name));
    pids.iter().find_map(|&pid| {
        let maps = plumb_process::mappings(pid)?;
        let path =
            parse_maps(&maps).map(|line| Path::new(OsStr::from_bytes(line.path))).find(|path| is_it(path))?;
        // In the process' mount namespace.
        let root = format!("/proc/{}/root", plumb_process::living_thread(pid));
        let inside = Path::new(&root).join(path.strip_prefix("/").ok()?);
        let outside = path.to_owned();
        Some(if outside.exists() { outside } else { inside })
    })
}

/// The command to be recorded, if it has that name.
fn command(name: &str, target: &Target) -> Option<PathBuf> {
    let Target::Command(launch) = target else { return None };
    let path = Path::new(&launch.program);
    if path.file_name() != Some(OsStr::new(name)) || !launch.program.as_bytes().contains(&b'/') {
        return None;
    }
    fs::canonicalize(path).ok()
}

fn in_folders(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    // A canonical path: the kernel probes the file, whatever its name.
    folders.iter().find_map(|folder| fs::canonicalize(folder.join(name)).ok().filter(|path| is_native(path)))
}

/// Whether it is a file of code for this CPU. 32-bit libraries may have the same names.
fn is_native(path: &Path) -> bool {
    let elf = |path: &Path| plumb_process::Elf::read(fs::File::open(path).ok()?).ok();
    match (elf(path), elf(Path::new("/proc/self/exe"))) {
        (Some(file), Some(own)) => file.machine == own.machine && file.is_64 == own.is_64,
        (file, None) => file.is_some(),
        (None, _) => false,
    }
}

/// The loader's search path for libraries: ld.so(8), except its cache, which covers these directories.
fn library_folders() -> Vec<PathBuf> {
    let set = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(&set).filter(|path| !path.as_os_str().is_empty()).collect();
    let entries = fs::read_dir("/etc/ld.so.conf.d").into_iter().flatten().flatten().map(|entry| entry.path());
    for file in entries.chain([PathBuf::from("/etc/ld.so.conf")]) {
        let text = fs::read_to_string(file).unwrap_or_default();
        folders.extend(text.lines().map(str::trim).filter(|line| line.starts_with('/')).map(PathBuf::from));
    }
    folders.extend(LIBRARIES.iter().map(PathBuf::from));
    folders
}

fn program_folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).filter(|path| !path.as_os_str().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_by_its_name() {
        let path = find_file("libc.so.6", &Target::Machine).expect("every program uses it");
        assert!(path.is_absolute() && path.is_file(), "{path:?}");
        let own = Target::Processes(vec![std::process::id()]);
        let mapped = find_file("libc.so.6", &own).expect("this test has it mapped");
        assert_eq!(fs::canonicalize(mapped).expect("it is there"), path);
        let error = find_file("libnowhere.so", &Target::Machine).expect_err("there is none").to_string();
        assert!(error.contains("give its path"), "{error}");
    }

    #[test]
    fn several_events_are_a_list_or_options() {
        let names = |names: &[&str]| -> Result<Vec<(String, Option<Code>)>, EventError> {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let counters = counters(&names, &Target::Machine)?;
            Ok(counters.into_iter().map(|(counter, code)| (counter.name().to_owned(), code)).collect())
        };
        let found = names(&["faults:u,cs", "cpu-clock"]).expect("all of them are known");
        let expected = [("page-faults", Some(Code::User)), ("context-switches", None), ("cpu-clock", None)];
        assert_eq!(found, expected.map(|(name, code)| (name.to_owned(), code)));
        assert!(names(&["cs", "faults,context-switches"]).is_err(), "one of them is there twice");
        assert_eq!(names(&[]).expect("none is the default"), []);
        assert_eq!(list("cs,uprobe:a.so:f<int, int>"), ["cs", "uprobe:a.so:f<int, int>"]);
        assert_eq!(list("uprobe:./a:f,faults,sched:x"), ["uprobe:./a:f", "faults", "sched:x"]);
        assert_eq!(list("uprobe:a:f<g(int, int), h>,cs"), ["uprobe:a:f<g(int, int), h>", "cs"]);
        for name in ["uprobe:a:T::operator,", "uprobe:a:operator<(T, T)"] {
            assert_eq!(list(name), [name]);
        }
    }
}
