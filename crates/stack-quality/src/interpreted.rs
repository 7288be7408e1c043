//! Programs in languages whose functions the recording lacks: reports that the interpreter's C functions are shown instead, or that callers
//! are missing, and how to record the language's own functions.
//!
//! Elsewhere: code compiled at run time, see `runtimes`.

use std::collections::HashMap;

use plumb_capture_bpf::Unsupported;
use plumb_interpreters::{LANGUAGES, Language};
use plumb_profile::{DsoKind, Profile, StackId};

use crate::nameless::NOTABLE;

/// A language whose frames are not read, and prefixes of its interpreter's file names.
struct Other {
    name: &'static str,
    files: &'static [&'static str],
}

/// Chez Scheme, on which Racket is built: its code is compiled, and runs on separate stack segments in the heap.
const SCHEME: &str = "Scheme";
/// The shell comes last: it runs the others, and is matched by its whole name.
const OTHERS: [Other; 11] = [
    Other { name: "Lua", files: &["lua5", "liblua5"] },
    Other { name: "LuaJIT", files: &["luajit", "libluajit"] },
    Other { name: "PyPy", files: &["pypy", "libpypy"] },
    Other { name: SCHEME, files: &["chezscheme", "racket"] },
    Other { name: "Guile", files: &["guile", "libguile"] },
    Other { name: "Tcl", files: &["tclsh", "libtcl"] },
    Other { name: "R", files: &["libR.so"] },
    Other { name: "Prolog", files: &["swipl", "libswipl"] },
    Other { name: "Forth", files: &["gforth"] },
    Other { name: "awk", files: &["gawk", "mawk"] },
    Other { name: "bash", files: &["bash"] },
];

/// A language by its interpreter's file.
#[derive(Clone, Copy)]
enum Spoken {
    /// Frames are read.
    Read(&'static Language),
    /// Frames are not read.
    Other(&'static Other),
}

impl Spoken {
    fn name(self) -> &'static str {
        match self {
            Spoken::Read(language) => language.name,
            Spoken::Other(other) => other.name,
        }
    }
}

/// A language with few functions in the recording, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreted {
    /// Name of the language.
    pub language: &'static str,
    /// Samples with a frame of its interpreter and none of its functions.
    pub samples: u64,
    /// The way to record its functions; empty if none is known.
    pub remedy: String,
}

impl Interpreted {
    /// Returns the end of the sentence "N% of samples are in LANGUAGE: …".
    pub fn shown(&self) -> &'static str {
        match self.language {
            SCHEME => "it keeps callers on a stack of its own, which plumb does not read",
            _ => "shown are functions of its interpreter, not of the program",
        }
    }
}

/// The way stacks were captured, and whether the kernel could unwind them: advice on some languages depends on it.
#[derive(Clone, Copy)]
pub struct Way<'w> {
    /// Stacks were unwound in the kernel.
    pub by_kernel: bool,
    /// The reason why the kernel can't unwind here, if so. Called only if needed, as the check takes a while.
    pub refusal: &'w dyn Fn() -> Option<Unsupported>,
}

/// The languages with a notable share of the samples, largest first, and the number of samples in the recording.
pub fn interpreted(profile: &Profile, way: Way<'_>) -> (Vec<Interpreted>, u64) {
    let mut known: HashMap<StackId, Option<Spoken>> = HashMap::new();
    let (mut counts, mut all) = (Vec::<(Spoken, u64)>::new(), 0_u64);
    let of_file: Vec<Option<Spoken>> =
        profile.dsos.iter().map(|(_, dso)| language_of(profile, dso)).collect();
    for sample in profile.samples.iter() {
        all += 1;
        let Some(stack) = sample.stack else { continue };
        let language = *known.entry(stack).or_insert_with(|| language(profile, &of_file, stack));
        let Some(language) = language else { continue };
        match counts.iter_mut().find(|(other, _)| other.name() == language.name()) {
            Some((_, count)) => *count += 1,
            None => counts.push((language, 1)),
        }
    }
    let mut found: Vec<Interpreted> = counts
        .into_iter()
        .filter(|&(language, samples)| {
            let is_read = match language {
                Spoken::Read(language) => way.by_kernel || language.on_native_stack,
                Spoken::Other(_) => false,
            };
            samples * NOTABLE >= all.max(1) && !is_read
        })
        .map(|(language, samples)| Interpreted {
            language: language.name(),
            samples,
            remedy: match language {
                Spoken::Read(language) => remedy(profile, way, language),
                Spoken::Other(_) => String::new(),
            },
        })
        .collect();
    found.sort_by_key(|language| std::cmp::Reverse(language.samples));
    (found, all)
}

/// The language whose interpreter is in a file.
fn language_of(profile: &Profile, dso: &plumb_profile::Dso) -> Option<Spoken> {
    let path = Some(profile.strings.get(dso.path)).filter(|_| dso.kind == DsoKind::File)?;
    let name = file_name(path);
    let is_of = |file: &&str| if *file == "bash" { name == *file } else { name.starts_with(file) };
    let read = LANGUAGES.into_iter().find(|language| language.has_file(name)).map(Spoken::Read);
    read.or_else(|| OTHERS.iter().find(|other| other.files.iter().any(&is_of)).map(Spoken::Other))
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The language of the interpreter in a stack, unless a frame of the stack is a function of the interpreted program.
fn language(profile: &Profile, of_file: &[Option<Spoken>], stack: StackId) -> Option<Spoken> {
    let mut found = None;
    for id in profile.frames_of(Some(stack)) {
        let Some(dso) = profile.frames[id].dso else { continue };
        match profile.dsos[dso].kind {
            DsoKind::Script => return None,
            // Named by a map that the interpreter has written.
            DsoKind::Anonymous { .. } if !profile.symbols.of(id).is_empty() => return None,
            DsoKind::File if found.is_none() => found = of_file[plumb_profile::Id::index(dso)],
            _ => {}
        }
    }
    found
}

/// Advises to record the program's own functions with stacks unwound in the kernel, or, if it can't do that, by other means.
fn remedy(profile: &Profile, way: Way<'_>, language: &Language) -> String {
    let by_kernel = match (way.refusal)() {
        None => format!("record with --capture bpf: {}", language.versions),
        Some(Unsupported::Capabilities(_)) => format!("as root, with --capture bpf: {}", language.versions),
        Some(why) => format!("plumb stack -p PID shows them; recordings can't here: {why}"),
    };
    let paths = profile.dsos.iter().map(|(_, dso)| profile.strings.get(dso.path));
    match (language.other_way)(&paths.map(file_name).collect::<Vec<_>>()) {
        Some(other) => format!("{by_kernel}; or {other}"),
        None => by_kernel,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_profile::{
        Address, AddressSpace, Dso, Event, Found, Frame, FrameKind, Process, Sample, Thread,
    };

    /// A profile with stacks of frames in these files, outermost last, and their numbers of samples.
    fn profile(stacks: &[(&[(&str, DsoKind)], u64)]) -> Profile {
        let mut profile = Profile::default();
        let name = profile.strings.add("cpu-clock");
        let process = profile.processes.push(Process { pid: 7, ppid: 1, exe: name });
        let thread = profile.threads.push(Thread { process, tid: 7, comm: name });
        let event = profile.events.push(Event { name, unit: name });
        for (files, count) in stacks {
            let mut frames = Vec::new();
            for &(path, kind) in *files {
                let path = profile.strings.add(path);
                let dso = Dso { path, build_id: None, kind, addresses: AddressSpace::Svma };
                let dso = profile.dsos.add(dso);
                frames.push(profile.frames.add(Frame {
                    kind: FrameKind::User,
                    dso: Some(dso),
                    address: Address(16),
                    is_return: false,
                    found: Found::Sampled,
                }));
            }
            let stack = profile.add_stack(&frames);
            for time_ns in 0..*count {
                let sample = Sample { time_ns, thread, cpu: 0, event, stack, syscall: None, weight: 1 };
                profile.samples.push(sample);
            }
        }
        profile
    }

    #[test]
    fn a_language_is_told_by_its_interpreter_unless_its_functions_are_there() {
        let file = DsoKind::File;
        let profile = profile(&[
            (&[("/usr/lib/libc.so.6", file), ("/usr/lib/libruby-3.1.so.3.1", file)], 50),
            (&[("/opt/bin/python3.12", file), ("[Python]", DsoKind::Script)], 30),
            (&[("/opt/bin/python3.12", file)], 15),
            (&[("/usr/bin/perl", file)], 4),
            (&[("/usr/bin/bashful", file)], 1),
            (&[("/usr/bin/php8.2", file)], 20),
            (&[("/usr/bin/php8.2", file), ("[php]", DsoKind::Script)], 20),
        ]);
        let told = |by_kernel, refusal: Option<Unsupported>| {
            let (found, all) = interpreted(&profile, Way { by_kernel, refusal: &|| refusal.clone() });
            assert_eq!(all, 140);
            found
        };
        let plain = told(false, Some(Unsupported::Capabilities(vec!["CAP_BPF"])));
        let counted: Vec<_> = plain.iter().map(|found| (found.language, found.samples)).collect();
        assert_eq!(counted, [("Ruby", 50), ("PHP", 20), ("Python", 15)], "4 in 140 are too few");
        assert_eq!(
            (&*plain[0].remedy, &*plain[1].remedy, &*plain[2].remedy),
            (
                "as root, with --capture bpf: Ruby 3.0 to 4.0",
                "as root, with --capture bpf: PHP 7.4 to 8.5",
                "as root, with --capture bpf: CPython 3.9 to 3.15; or run it with python3.12 -X perf"
            )
        );
        assert!(told(false, None)[2].remedy.starts_with("record with --capture bpf"));
        let old = told(false, Some(Unsupported::Helper("bpf_loop", "5.17")));
        assert!(
            old[0].remedy.contains("Linux 5.17") && !old[0].remedy.contains("--capture"),
            "{}",
            old[0].remedy
        );
        assert!(told(true, None).is_empty(), "functions of all are read there");
    }
}
