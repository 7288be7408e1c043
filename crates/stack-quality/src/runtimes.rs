//! Identifies the runtime that made a process' JIT code, by the files of its samples, and the option that makes the runtime keep frame
//! pointers or write names of its code. An option that is already set is not suggested.
//!
//! Elsewhere: the options of a process, see `told`; interpreted programs, see `interpreted`.

use plumb_interpreters::{JitAdvice, LANGUAGES};
use plumb_profile::{DsoKind, Profile};

use crate::interpreted::file_name;
use crate::told::Told;

/// A runtime with a JIT compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// A Java virtual machine.
    Java,
    /// Node.js.
    Node,
    /// Chromium, and browsers made of it.
    Chromium,
    /// Deno.
    Deno,
    /// Bun.
    Bun,
    /// .NET.
    DotNet,
    /// Mono.
    Mono,
    /// LuaJIT, also within another program.
    LuaJit,
    /// PyPy.
    PyPy,
    /// Erlang's BEAM, also for Elixir.
    Erlang,
    /// GNU Guile.
    Guile,
    /// A supported interpreter with a JIT compiler.
    Read(JitAdvice),
    /// Chez Scheme, also in Racket.
    Chez,
    /// Steel Bank Common Lisp.
    Sbcl,
}

/// Prefixes of file names, by runtime.
const FILES: [(&str, Runtime); 21] = [
    ("libjvm.so", Runtime::Java),
    // If all samples of a JVM are in JIT code, only the program is known.
    ("java", Runtime::Java),
    ("libcoreclr.so", Runtime::DotNet),
    ("libnode.so", Runtime::Node),
    ("node", Runtime::Node),
    ("chromium", Runtime::Chromium),
    ("chrome", Runtime::Chromium),
    ("deno", Runtime::Deno),
    ("bun", Runtime::Bun),
    ("mono", Runtime::Mono),
    ("libluajit", Runtime::LuaJit),
    ("luajit", Runtime::LuaJit),
    ("libpypy", Runtime::PyPy),
    ("pypy", Runtime::PyPy),
    ("dotnet", Runtime::DotNet),
    ("beam.", Runtime::Erlang),
    ("guile", Runtime::Guile),
    ("libguile", Runtime::Guile),
    ("chezscheme", Runtime::Chez),
    ("racket", Runtime::Chez),
    ("sbcl", Runtime::Sbcl),
];

/// Remedy for a runtime that names none of its code.
const NO_MAP: &str = "none: this runtime writes no map in perf's format";

impl Runtime {
    /// The runtime of a process, if it is a known one.
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
        let names = paths.map(file_name);
        names.into_iter().find_map(|name| {
            let read = || LANGUAGES.iter().find(|language| language.has_file(name))?.jit.map(Runtime::Read);
            FILES.iter().find(|(file, _)| name.starts_with(file)).map(|(_, runtime)| *runtime).or_else(read)
        })
    }

    /// The remedy that lets stacks continue through JIT code, for a process with these options; empty if nothing more helps.
    pub fn frames(self, told: &Told) -> &'static str {
        let (option, advice) = match self {
            Runtime::Node => (
                "--interpreted-frames-native-stack",
                "run it with node --interpreted-frames-native-stack --perf-basic-prof",
            ),
            // Embedded in another program, such as an editor. Scanning does not help: the interpreter, called by name, jumps to the code, and
            // after that call the scan skips its callers.
            Runtime::LuaJit if !told.has("luajit") => ("jit.off()", "have it call jit.off() as it begins"),
            Runtime::LuaJit => ("-joff", "run it with luajit -joff"),
            Runtime::PyPy => ("--jit", "run it with pypy --jit off, or record with --scan"),
            Runtime::Guile => (
                "GUILE_JIT_THRESHOLD",
                "run it with GUILE_JIT_THRESHOLD=-1 in its environment: its code is interpreted then",
            ),
            Runtime::DotNet => return "record with --scan",
            Runtime::Read(jit) => return jit.frames,
            // A scan does not find the callers of code that its schedulers run between processes either.
            Runtime::Erlang if told.has("+JPperf") => {
                return "none: code of Erlang's own runtime keeps no frame pointer";
            }
            // Must be equal to the text in `interpreted`.
            Runtime::Chez => return "none: it keeps callers on a stack of its own",
            // plumb record walks its stacks without an option.
            Runtime::Java
            | Runtime::Chromium
            | Runtime::Deno
            | Runtime::Bun
            | Runtime::Mono
            | Runtime::Erlang
            | Runtime::Sbcl => return "",
        };
        if told.has(option) { "" } else { advice }
    }

    /// The remedy that gives JIT code names, for a process with these options; empty if nothing more helps: code missing in an existing map never gets a name.
    pub fn names(self, told: &Told) -> String {
        if told.has_map {
            return String::new();
        }
        let (option, advice) = match self {
            Runtime::Java => return java_names(told),
            Runtime::Mono if told.has("--jitmap") => return MONO_AT_EXIT.to_owned(),
            // V8 was read: the rest has no names.
            Runtime::Node if told.has_javascript => return String::new(),
            Runtime::Node => ("--perf-basic-prof", "run it with node --perf-basic-prof"),
            Runtime::Chromium => {
                ("--perf-basic-prof", "run it with chromium --no-sandbox --js-flags=--perf-basic-prof")
            }
            Runtime::Deno => ("--perf-basic-prof", "run it with deno run --v8-flags=--perf-basic-prof"),
            Runtime::DotNet => {
                ("DOTNET_PerfMapEnabled", "run it with DOTNET_PerfMapEnabled=1 in its environment")
            }
            Runtime::Mono => ("--jitmap", "run it with mono --jitmap, and record until it ends"),
            Runtime::Erlang => ("+JPperf", erlang_names(told)),
            Runtime::Read(jit) => jit.names,
            Runtime::Bun
            | Runtime::LuaJit
            | Runtime::PyPy
            | Runtime::Guile
            | Runtime::Chez
            | Runtime::Sbcl => return NO_MAP.to_owned(),
        };
        if told.has(option) { String::new() } else { advice.to_owned() }
    }
}

/// For Mono with its option: the map is written in pieces of 4 KiB, and completed only as the process exits.
const MONO_AT_EXIT: &str = "record until the process ends: mono --jitmap completes its map only then";

/// The launchers of Elixir don't take Erlang's options themselves, but have one that passes them on.
fn erlang_names(told: &Told) -> &'static str {
    match () {
        () if told.runs("mix") => "run it with elixir --erl '+JPperf true' -S mix",
        () if told.runs("iex") => "run it with iex --erl '+JPperf true'",
        () if told.runs("elixir") || told.has("-elixir_root") => "run it with elixir --erl '+JPperf true'",
        () => "run it with erl +JPperf true",
    }
}

/// A JVM writes its map on request, and at exit if started with that option.
fn java_names(told: &Told) -> String {
    let has_option = told.has("+DumpPerfMapAtExit");
    match told.running {
        Some(pid) => {
            let ask = format!("jcmd {pid} Compiler.perfmap (JDK 17 and newer), then record again");
            if has_option { format!("{ask}, or record until it ends") } else { ask }
        }
        None if has_option => "it writes its map as it exits, which it did not: end it by SIGTERM or let it return, or while it \
                               runs: jcmd PID Compiler.perfmap (JDK 17 and newer)"
            .to_owned(),
        None => "plumb record names its functions without an option (OpenJDK 11 to 25); for another virtual machine, while it runs: \
                 jcmd PID Compiler.perfmap (JDK 17 and newer)"
            .to_owned(),
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
        let program = profile.strings.add("/opt/jdk/bin/java");
        profile.processes.push(Process { pid: 4, ppid: 0, exe: program });
        let dso = profile.dsos.add(Dso {
            path: libjvm,
            build_id: None,
            kind: DsoKind::File,
            addresses: AddressSpace::Svma,
        });
        profile.mappings.push(Mapping { process: java, dso, start: 0, end: 1, bias: 0 });
        let found = [1, 2, 3, 4].map(|pid| Runtime::of(&profile, pid));
        assert_eq!(found, [Some(Runtime::Java), Some(Runtime::Node), None, Some(Runtime::Java)]);
    }

    #[test]
    fn what_was_done_already_is_no_advice() {
        let told = |words: &[&str]| {
            let mut profile = Profile::default();
            profile.meta.command = words.iter().map(|&word| word.into()).collect();
            Told::of(&profile, 0)
        };
        let (plain, prof) = (told(&["node", "x.js"]), told(&["node", "--perf-basic-prof", "x.js"]));
        assert!(
            Runtime::Node.names(&plain).contains("--perf-basic-prof")
                && Runtime::Node.names(&prof).is_empty()
        );
        assert!(!Runtime::Node.frames(&prof).is_empty(), "that is another option");
        let mut mapped = plain;
        mapped.has_map = true;
        assert!(Runtime::Java.names(&mapped).is_empty() && Runtime::Java.frames(&mapped).is_empty());
        let jitmap = told(&["mono", "--jitmap", "x.exe"]);
        assert!(Runtime::Mono.names(&jitmap).contains("until the process ends"));
        let lua = |words: &[&str]| Runtime::LuaJit.frames(&told(words)).contains("luajit -joff");
        assert!(lua(&["luajit", "x.lua"]) && !lua(&["nvim", "x.lua"]), "an editor has no such option");
        assert!(Runtime::Erlang.frames(&told(&["erl", "+JPperf", "true"])).starts_with("none:"));
    }

    #[test]
    fn options_for_erlang_go_through_the_program_that_starts_it() {
        let names = |words: &[&str]| {
            let mut profile = Profile::default();
            profile.meta.command = words.iter().map(|&word| word.into()).collect();
            Runtime::Erlang.names(&Told::of(&profile, 0))
        };
        assert_eq!(names(&["erl", "-noshell"]), "run it with erl +JPperf true");
        let elixir = "run it with elixir --erl '+JPperf true'";
        assert_eq!(names(&["/usr/bin/elixir", "x.exs"]), elixir);
        assert_eq!(names(&["beam.smp", "--", "-elixir_root", "/usr/lib/elixir/lib"]), elixir);
        assert_eq!(names(&["mix", "run"]), format!("{elixir} -S mix"));
        assert_eq!(names(&["iex"]), "run it with iex --erl '+JPperf true'");
        assert_eq!(names(&["elixir", "--erl", "+JPperf true", "x.exs"]), "");
    }

    #[test]
    fn a_jvm_that_runs_is_asked_for_its_map() {
        let names = |words: &[&str], running| {
            let mut profile = Profile::default();
            profile.meta.command = words.iter().map(|&word| word.into()).collect();
            let mut told = Told::of(&profile, 0);
            told.running = running;
            Runtime::Java.names(&told)
        };
        let with = ["java", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DumpPerfMapAtExit", "Main"];
        for words in [&["java", "Main"][..], &with] {
            let remedy = names(words, Some(4321));
            assert!(remedy.starts_with("jcmd 4321 Compiler.perfmap"), "{remedy}");
        }
        assert!(
            names(&["java", "Main"], None).starts_with("plumb record names its functions without an option")
        );
        assert!(names(&with, None).starts_with("it writes its map as it exits, which it did not"));
    }
}
