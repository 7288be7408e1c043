//! The options that a process was started with, and whether its runtime has named its code: an option already set is not suggested.
//!
//! Elsewhere: the options that help, see `runtimes`.

use std::collections::BTreeSet;
use std::path::Path;

use plumb_interpreters::LANGUAGES;
use plumb_profile::{DsoKind, Profile};

/// Environment variables that other runtimes than the supported interpreters take options from.
const VARIABLES: [&str; 6] = [
    "NODE_OPTIONS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "ERL_FLAGS",
    "DOTNET_PerfMapEnabled",
    "GUILE_JIT_THRESHOLD",
];

/// Options and state of a process.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// The words of its command line and of those variables.
    words: Vec<String>,
    /// Whether some of its code has names from a map.
    pub has_map: bool,
    /// Whether some of its functions were read by V8's own structures.
    pub has_javascript: bool,
    /// The process ID, if the process still runs the recorded program.
    pub running: Option<u32>,
}

impl Told {
    /// Looks up the process with this ID. If it has ended, the recorded command is used.
    pub fn of(profile: &Profile, pid: u32) -> Self {
        let own = running(profile, pid);
        let running = own.is_some().then_some(pid);
        let mut words = own.unwrap_or_default();
        if words.is_empty() && !profile.meta.command.is_empty() {
            words.extend(profile.meta.command.iter().cloned());
            words.extend(variables().filter_map(|name| Some(assignment(name, &std::env::var(name).ok()?))));
        }
        Self {
            words,
            has_map: mapped(profile).contains(&pid),
            has_javascript: has_javascript(profile),
            running,
        }
    }

    /// Whether one of the words is this program.
    pub fn runs(&self, program: &str) -> bool {
        self.words.iter().any(|word| word.rsplit('/').next() == Some(program))
    }

    /// Whether one of the words contains this text.
    pub fn has(&self, text: &str) -> bool {
        self.words.iter().any(|word| word.contains(text))
    }
}

/// Environment variables that runtimes take options from.
fn variables() -> impl Iterator<Item = &'static str> {
    VARIABLES.into_iter().chain(LANGUAGES.iter().flat_map(|language| language.variables.iter().copied()))
}

fn assignment(name: &str, value: &str) -> String {
    format!("{name}={value}")
}

/// The words of a process that still runs the recorded program.
fn running(profile: &Profile, pid: u32) -> Option<Vec<String>> {
    let thread = plumb_process::living_thread(pid);
    let executable = std::fs::read_link(format!("/proc/{thread}/exe")).ok()?;
    let is_same = |path| Path::new(profile.strings.get(path)) == executable;
    profile.processes.iter().find(|(_, process)| process.pid == pid && is_same(process.exe))?;
    let read = |name: &str| std::fs::read(format!("/proc/{thread}/{name}")).unwrap_or_default();
    let split = |text: &[u8]| -> Vec<String> {
        text.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    };
    let mut words = split(&read("cmdline"));
    let is_option = |word: &String| variables().any(|name| word.starts_with(&assignment(name, "")));
    words.extend(split(&read("environ")).into_iter().filter(is_option));
    Some(words)
}

/// Whether a recording has functions of JavaScript.
fn has_javascript(profile: &Profile) -> bool {
    let scripts = profile.dsos.iter().filter(|(_, dso)| dso.kind == DsoKind::Script);
    scripts.into_iter().any(|(_, dso)| profile.strings.get(dso.path).contains("javascript"))
}

/// Processes with named code outside of files.
fn mapped(profile: &Profile) -> BTreeSet<u32> {
    let frames = profile.frames.iter().filter(|(id, _)| !profile.symbols.of(*id).is_empty());
    let owners = frames.filter_map(|(_, frame)| match profile.dsos[frame.dso?].kind {
        DsoKind::Anonymous { pid } => Some(pid),
        _ => None,
    });
    owners.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_profile::Process;

    #[test]
    fn a_process_that_runs_says_itself_what_it_was_told() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .env("NODE_OPTIONS", "--some-option")
            .spawn()
            .expect("there is sleep");
        let pid = child.id();
        // The kernel shows the command line once it is complete.
        while std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| !words.ends_with(b"1000\0")) {
            std::thread::yield_now();
        }
        let path = std::fs::read_link(format!("/proc/{pid}/exe")).expect("it runs");
        let mut profile = Profile::default();
        profile.meta.command = vec!["other".into(), "--its-option".into()];
        let [exe, other] =
            [path.to_str().expect("a path"), "/bin/other"].map(|path| profile.strings.add(path));
        let own = profile.processes.push(Process { pid, ppid: 0, exe });
        let told = Told::of(&profile, pid);
        let ended = Told::of(&profile, 0);
        profile.processes.get_mut(own).exe = other;
        let replaced = Told::of(&profile, pid);
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        assert!(told.has("1000") && told.has("--some-option") && !told.has("--its-option") && !told.has_map);
        assert_eq!((told.running, ended.running, replaced.running), (Some(pid), None, None));
        assert!(ended.has("--its-option") && !ended.has("1000"), "only the command is known");
        assert!(!replaced.has("1000"), "another program has that number now");
    }
}
