//! Which runtime made the JIT code of a process, by the files that its samples fell into, and what makes that runtime keep frame pointers
//! or say the names of its code.
//!
//! Not here: whether it was told so already.

use plumb_profile::{DsoKind, Profile};

/// A runtime with a compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runtime {
    Java,
    Node,
    DotNet,
    LuaJit,
    PyPy,
}

/// Prefixes of file names, by runtime.
const FILES: [(&str, Runtime); 9] = [
    ("libjvm.so", Runtime::Java),
    ("libcoreclr.so", Runtime::DotNet),
    ("libnode.so", Runtime::Node),
    ("node", Runtime::Node),
    ("libluajit", Runtime::LuaJit),
    ("luajit", Runtime::LuaJit),
    ("libpypy", Runtime::PyPy),
    ("pypy", Runtime::PyPy),
    ("dotnet", Runtime::DotNet),
];

impl Runtime {
    /// The runtime of a process, if it is one of these.
    pub fn of(profile: &Profile, pid: u32) -> Option<Self> {
        let is_own = |process: plumb_profile::ProcessId| profile.processes[process].pid == pid;
        let mapped = profile.mappings.iter().filter(|mapping| is_own(mapping.process));
        let files = mapped.map(|mapping| &profile.dsos[mapping.dso]).filter(|dso| dso.kind == DsoKind::File);
        let programs = profile
            .processes
            .iter()
            .filter(|(_, process)| process.pid == pid)
            .map(|(_, process)| process.exe);
        let paths = files.map(|dso| dso.path).chain(programs).map(|path| profile.strings.get(path));
        let names = paths.map(|path| path.rsplit('/').next().unwrap_or(path));
        names.into_iter().find_map(|name| {
            let (_, runtime) = FILES.iter().find(|(file, _)| name.starts_with(file))?;
            Some(*runtime)
        })
    }

    /// How stacks go on through its code.
    pub fn frames(self) -> &'static str {
        match self {
            Runtime::Java => "run it with java -XX:+PreserveFramePointer",
            Runtime::Node => "run it with node --interpreted-frames-native-stack --perf-basic-prof",
            Runtime::LuaJit => "run it with luajit -joff, or record with --scan",
            Runtime::PyPy => "run it with pypy --jit off, or record with --scan",
            Runtime::DotNet => "record with --scan",
        }
    }

    /// How its code gets names.
    pub fn names(self) -> &'static str {
        match self {
            Runtime::Java => "while it runs: jcmd PID Compiler.perfmap (JDK 17 and newer)",
            Runtime::Node => "run it with node --perf-basic-prof",
            Runtime::DotNet => "run it with DOTNET_PerfMapEnabled=1 in its environment",
            Runtime::LuaJit => "run it with luajit -joff: it writes no map that perf's format could have",
            Runtime::PyPy => "run it with pypy --jit off: it writes no map in perf's format",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_profile::{AddressSpace, Dso, Mapping, Process};

    #[test]
    fn a_runtime_is_told_by_the_files_of_its_process() {
        let mut profile = Profile::default();
        let (libjvm, node) =
            (profile.strings.add("/opt/jdk/lib/server/libjvm.so"), profile.strings.add("/usr/bin/node"));
        let empty = profile.strings.empty();
        let java = profile.processes.push(Process { pid: 1, ppid: 0, exe: empty });
        profile.processes.push(Process { pid: 2, ppid: 0, exe: node });
        profile.processes.push(Process { pid: 3, ppid: 0, exe: empty });
        let dso = profile.dsos.add(Dso {
            path: libjvm,
            build_id: None,
            kind: DsoKind::File,
            addresses: AddressSpace::Svma,
        });
        profile.mappings.push(Mapping { process: java, dso, start: 0, end: 1, bias: 0 });
        let found = [1, 2, 3].map(|pid| Runtime::of(&profile, pid));
        assert_eq!(found, [Some(Runtime::Java), Some(Runtime::Node), None]);
    }
}
