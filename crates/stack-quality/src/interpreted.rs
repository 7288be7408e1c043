//! Programs in languages whose functions the recording lacks: reports that the interpreter's C functions are shown instead, or that callers
//! are missing, and how to record the language's own functions.
//!
//! Elsewhere: code compiled at run time, see `runtimes`.

use std::collections::HashMap;

use plumb_capture_bpf::Unsupported;
use plumb_interpreters::Known;
use plumb_profile::{DsoKind, Profile, StackId};

use crate::nameless::NOTABLE;

/// A language, and prefixes of its interpreter's file names.
struct Language {
    name: &'static str,
    files: &'static [&'static str],
}

const PYTHON: &str = Known::PYTHON.language;
const PHP: &str = Known::PHP.language;
const RUBY: &str = Known::RUBY.language;
const PERL: &str = Known::PERL.language;
/// Languages whose frames the BPF unwinder reads.
const READ: [Known; 4] = [Known::PYTHON, Known::PHP, Known::RUBY, Known::PERL];
/// Chez Scheme, on which Racket is built: its code is compiled, and runs on separate stack segments in the heap.
const SCHEME: &str = "Scheme";
/// The shell comes last: it runs the others, and is matched by its whole name.
const LANGUAGES: [Language; 15] = [
    Language { name: PYTHON, files: &["python2", "python3", "libpython"] },
    Language { name: RUBY, files: &["ruby", "libruby"] },
    Language { name: PERL, files: &["perl", "libperl"] },
    Language { name: PHP, files: &["php", "libphp"] },
    Language { name: "Lua", files: &["lua5", "liblua5"] },
    Language { name: "LuaJIT", files: &["luajit", "libluajit"] },
    Language { name: "PyPy", files: &["pypy", "libpypy"] },
    Language { name: SCHEME, files: &["chezscheme", "racket"] },
    Language { name: "Guile", files: &["guile", "libguile"] },
    Language { name: "Tcl", files: &["tclsh", "libtcl"] },
    Language { name: "R", files: &["libR.so"] },
    Language { name: "Prolog", files: &["swipl", "libswipl"] },
    Language { name: "Forth", files: &["gforth"] },
    Language { name: "awk", files: &["gawk", "mawk"] },
    Language { name: "bash", files: &["bash"] },
];

/// A language of which the recording has no or few functions.
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
    let mut known: HashMap<StackId, Option<usize>> = HashMap::new();
    let (mut counts, mut all) = ([0_u64; LANGUAGES.len()], 0_u64);
    let of_file: Vec<Option<usize>> = profile.dsos.iter().map(|(_, dso)| language_of(profile, dso)).collect();
    for sample in profile.samples.iter() {
        all += 1;
        let Some(stack) = sample.stack else { continue };
        let language = *known.entry(stack).or_insert_with(|| language(profile, &of_file, stack));
        language.into_iter().for_each(|language| counts[language] += 1);
    }
    let mut found: Vec<Interpreted> = LANGUAGES
        .iter()
        .zip(counts)
        .filter(|(language, samples)| {
            let is_read = way.by_kernel && READ.iter().any(|known| known.language == language.name);
            samples * NOTABLE >= all.max(1) && !is_read
        })
        .map(|(language, samples)| Interpreted {
            language: language.name,
            samples,
            remedy: match language.name {
                PYTHON => python(profile, way),
                name => READ
                    .iter()
                    .find(|known| known.language == name)
                    .map_or_else(String::new, |known| by_kernel(way, known)),
            },
        })
        .collect();
    found.sort_by_key(|language| std::cmp::Reverse(language.samples));
    (found, all)
}

/// Index in [`LANGUAGES`] of the language whose interpreter is in a file.
fn language_of(profile: &Profile, dso: &plumb_profile::Dso) -> Option<usize> {
    let path = Some(profile.strings.get(dso.path)).filter(|_| dso.kind == DsoKind::File)?;
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_of = |file: &&str| if *file == "bash" { name == *file } else { name.starts_with(file) };
    LANGUAGES.iter().position(|language| language.files.iter().any(&is_of))
}

/// The language of the interpreter in a stack, unless a frame of the stack is a function of the interpreted program.
fn language(profile: &Profile, of_file: &[Option<usize>], stack: StackId) -> Option<usize> {
    let mut found = None;
    for id in profile.frames_of(Some(stack)) {
        let Some(dso) = profile.frames[id].dso else { continue };
        match profile.dsos[dso].kind {
            DsoKind::Script => return None,
            // Named by a map, as `python -X perf` writes one.
            DsoKind::Anonymous { .. } if !profile.symbols.of(id).is_empty() => return None,
            DsoKind::File if found.is_none() => found = of_file[plumb_profile::Id::index(dso)],
            _ => {}
        }
    }
    found
}

/// Advises to record the program's own functions with stacks unwound in the kernel, or, if it can't do that, by other means.
fn by_kernel(way: Way<'_>, known: &Known) -> String {
    match (way.refusal)() {
        None => format!("record with --capture bpf: {}", known.versions),
        Some(Unsupported::Capabilities(_)) => format!("as root, with --capture bpf: {}", known.versions),
        Some(why) => format!("plumb stack -p PID shows them; recordings can't here: {why}"),
    }
}

/// Returns the advice on seeing Python functions. Since 3.12, Python itself makes a named stub for each with `-X perf`.
fn python(profile: &Profile, way: Way<'_>) -> String {
    let by_kernel = by_kernel(way, &Known::PYTHON);
    match stub_version(profile) {
        Some(name) => format!("{by_kernel}; or run it with {name} -X perf"),
        None => by_kernel,
    }
}

/// Name of the recorded Python, if its version supports `-X perf`.
fn stub_version(profile: &Profile) -> Option<String> {
    let paths = profile.dsos.iter().map(|(_, dso)| profile.strings.get(dso.path));
    let names = paths.map(|path| path.rsplit('/').next().unwrap_or(path));
    names.into_iter().find_map(|name| {
        let version = name.strip_prefix("lib").unwrap_or(name).strip_prefix("python3.")?;
        let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
        (digits.parse::<u32>().ok()? >= 12).then(|| format!("python3.{digits}"))
    })
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
        assert_eq!(counted, [(RUBY, 50), (PHP, 20), (PYTHON, 15)], "4 in 140 are too few");
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
