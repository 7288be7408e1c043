//! Functions of PHP, Ruby and Perl programs: recordings compared with the programs' own measurements, and `plumb stack` and off-CPU
//! times compared with the language's own stack traces.
//!
//! Needs PHP, Ruby or Perl of a known version, and BPF; without them, a test prints so and is skipped. Python has its own tests.

mod hanging;
mod python;
mod target;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use hanging::{Frame, hanging, script_frames, stacks, waits_all_the_time};
use plumb_fixtures::{Requirement, needs, skip};
use python::{alone, counts, functions, plumb, program, record, spent, text, way};
use target::Target;

/// A language, and the properties of its test programs.
struct Language {
    /// The language's command, also the prefix of versioned commands.
    command: &'static str,
    /// Extension of its programs.
    extension: &'static str,
    requirement: Requirement,
    /// Code that prints 1 if the version is known.
    is_known: &'static str,
    /// Code that runs for a second.
    warm_up: &'static str,
    /// Number of call paths that its program measures.
    ways: usize,
    /// A function, the C function that it calls, and the function that calls.
    through_c: [&'static str; 3],
}

const PHP: Language = Language {
    command: "php",
    extension: "php",
    requirement: Requirement::Php,
    is_known: "-recho PHP_VERSION_ID >= 70400 && PHP_VERSION_ID < 80600 && !PHP_ZTS;",
    warm_up: "-r$until = hrtime(true) + 1e9; while (hrtime(true) < $until);",
    ways: 7,
    through_c: ["maps", "zend_call_function", "spin"],
};

const RUBY: Language = Language {
    command: "ruby",
    extension: "rb",
    requirement: Requirement::Ruby,
    is_known: "-eprint 1 if RUBY_VERSION >= '3.0' && RUBY_VERSION < '4.1'",
    warm_up: "-ei = 0; i += 1 while i < 30_000_000",
    ways: 7,
    through_c: ["sorts", "rb_ary_each", "spin"],
};

const PERL: Language = Language {
    command: "perl",
    extension: "pl",
    requirement: Requirement::Perl,
    is_known: "-euse Config; print 1 if $] >= 5.030 && $] < 5.043 && $Config{usethreads}",
    warm_up: "-e$i = 0; $i++ while $i < 30_000_000",
    ways: 8,
    through_c: ["main::finds", "Perl_pp_entersub", "main::is_wanted"],
};

impl Language {
    /// A directory for a test of this name; `None`, after saying why, if the language is not available.
    fn folder(&self, name: &str) -> Option<PathBuf> {
        let known = Command::new(self.command).arg(self.is_known).output();
        if !known.is_ok_and(|output| output.stdout == b"1") {
            skip(self.requirement, format_args!("there is no {} of a known version", self.command));
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", self.command));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("the folder for tests can be written");
        Some(folder)
    }

    fn program(&self, name: &str) -> String {
        program(&format!("{name}.{}", self.extension))
    }

    /// The hanging program, and its frames as the language tells them.
    fn hanging(&self) -> (Target, Vec<Frame>) {
        hanging(Command::new(self.command).arg(self.program("hangs")), 4)
    }

    fn has_the_shares_that_the_program_measured(&self) {
        let _alone = alone();
        let Some(folder) = self.folder("shares") else { return };
        for options in [&[][..], &["--timeline"]] {
            // A longer start, so that the tables are loaded before the measurement.
            let script =
                format!("{0} '{1}'; exec {0} {2} 0.4", self.command, self.warm_up, self.program("shares"));
            let Some(printed) = record(&folder, options, &["sh", "-c", &script]) else { return };
            let measured = spent(&printed);
            assert_eq!(measured.len(), self.ways, "{printed}");
            let functions = functions(&measured);
            let mut found: BTreeMap<String, u64> = BTreeMap::new();
            let folded = text(&plumb(&folder, &["fold"]).stdout);
            for (stack, samples) in counts(&folded) {
                assert!(!stack.contains("[native frames"), "each round is in its place: {stack}");
                *found.entry(way(&stack, &functions)).or_default() += samples;
            }
            println!("{found:#?}");
            for (way, spent) in &measured {
                spent.hold(way, found.get(way).copied().unwrap_or(0), 2.0, 0.1);
            }
            // Functions called by C are under the C function.
            let [outer, native, inner] = self.through_c;
            let through = |stack: &String| way(stack, &self.through_c) == [outer, native, inner].join(";");
            assert!(counts(&folded).keys().any(through), "{folded}");
        }
    }

    fn has_the_frames_that_the_language_tells(&self) {
        let Some(folder) = self.folder("stack") else { return };
        if !needs(Requirement::Ptrace) {
            return;
        }
        let (target, said) = self.hanging();
        let process = stacks(&folder, &target);
        let name = process["interpreter"].as_str().expect("it is known").to_lowercase();
        assert!(name.starts_with(self.command), "{name}");
        assert_eq!(script_frames(&process["threads"][0]), said);
    }

    fn has_waits_with_the_whole_time(&self) {
        let Some(folder) = self.folder("off-cpu") else { return };
        if !needs(Requirement::Bpf) {
            return;
        }
        let (target, said) = self.hanging();
        for stack in waits_all_the_time(&folder, &target, &said) {
            assert!(!stack.contains("[native frames"), "each round is in its place: {stack}");
        }
    }
}

#[test]
fn functions_of_php_have_the_shares_that_the_program_measured() {
    PHP.has_the_shares_that_the_program_measured();
}

#[test]
fn functions_and_lines_are_those_that_php_tells() {
    PHP.has_the_frames_that_the_language_tells();
}

#[test]
fn functions_of_php_that_wait_all_the_time_have_it() {
    PHP.has_waits_with_the_whole_time();
}

/// A callee of C code is the current call before it runs. Many samples meet that if the callees are short.
#[test]
fn short_callees_of_c_code_are_in_their_places() {
    let Some(folder) = PHP.folder("callbacks") else { return };
    let command = ["php", &program("callbacks.php"), "1.5"];
    let Some(_) = record(&folder, &["-F", "2999"], &command) else { return };
    let folded = counts(&text(&plumb(&folder, &["fold"]).stdout));
    for function in ["adds", "compares", "yields"] {
        let below =
            |stack: &&String| stack.starts_with("php;") && stack.split(';').any(|frame| frame == function);
        assert!(folded.keys().any(|stack| below(&stack)), "{function}: {folded:#?}");
    }
    let apart = folded.keys().find(|stack| stack.contains("[native frames"));
    assert_eq!(apart, None, "each call is in its place");
}

#[test]
fn functions_of_ruby_have_the_shares_that_the_program_measured() {
    RUBY.has_the_shares_that_the_program_measured();
}

#[test]
fn functions_are_those_that_ruby_tells() {
    RUBY.has_the_frames_that_the_language_tells();
}

#[test]
fn functions_of_ruby_that_wait_all_the_time_have_it() {
    RUBY.has_waits_with_the_whole_time();
}

#[test]
fn functions_of_perl_have_the_shares_that_the_program_measured() {
    PERL.has_the_shares_that_the_program_measured();
}

#[test]
fn functions_and_lines_are_those_that_perl_tells() {
    PERL.has_the_frames_that_the_language_tells();
}

#[test]
fn functions_of_perl_that_wait_all_the_time_have_it() {
    PERL.has_waits_with_the_whole_time();
}
