//! The programs in a kernel that takes them, as root: they walk what runs, and leave nothing behind.

use std::time::Duration;

use plumb_capture_bpf::{LoadError, Options, Programs};
use plumb_capture_perf::{Assistant, Launch, Recorded, Recorder, Target};

/// The programs; `None`, having said why, where they can't be had.
fn load(options: Options) -> Option<Programs> {
    match Programs::load(options) {
        Ok(programs) => Some(programs),
        Err(LoadError::Unsupported(why)) => {
            eprintln!("skipped: {why}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn two_recorders_load_the_programs_at_once() {
    let Some(first) = load(Options::default()) else { return };
    let second = load(Options { counting: false, ..Options::default() }).expect("the first could be loaded");
    assert_eq!(first.handed_over().walked, second.handed_over().walked);
}

/// A program whose stacks have an end that can be told.
fn burn() -> std::path::PathBuf {
    let source =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../capture-perf/tests/programs/burn.c");
    let program = std::env::temp_dir().join(format!("plumb-bpf-burn-{}", std::process::id()));
    let compiled = std::process::Command::new("cc")
        .args(["-O2", "-fomit-frame-pointer", "-pthread", "-o"])
        .arg(&program)
        .arg(source)
        .status();
    assert!(compiled.expect("cc is there").success());
    program
}

/// Records a command with the programs.
fn record(programs: Programs, words: &[&str]) -> Recorded {
    let (program, arguments) = words.split_first().expect("a command has a name");
    let arguments = arguments.iter().map(Into::into).collect();
    let target = Target::Command(Launch { program: program.into(), arguments, environment: Vec::new() });
    let options = plumb_capture_perf::Options::default();
    let mut recorder =
        Recorder::start_with(&target, &options, Some(Box::new(programs))).expect("recording begins");
    while recorder.step(Duration::from_millis(100)).expect("recording goes on").is_none() {}
    recorder.finish()
}

/// Nothing is missing, nearly all stacks are complete, and most were walked in the kernel.
fn check(recorded: &Recorded) {
    let statistics = &recorded.statistics;
    let handed_over = recorded.handed_over.as_ref().expect("there was something to hand over");
    let samples = recorded.profile.samples.len() as u64;
    assert_eq!(statistics.samples, samples, "counted samples are samples");
    let asked = recorded.target_cpu.expect("a command's time is known").total().as_secs_f64() * 999.0;
    assert!((samples as f64) > asked * 0.9 && (samples as f64) < asked * 1.1, "{samples} of {asked}");
    assert!(statistics.complete * 100 >= samples * 97, "{statistics:?}");
    assert!(handed_over.walked * 100 >= samples * 60, "{handed_over:?} of {samples}");
}

#[test]
fn a_command_is_walked_in_the_kernel_to_its_root() {
    let Some(programs) = load(Options::default()) else { return };
    let program = burn();
    let recorded = record(programs, &[&program.to_string_lossy(), "1500"]);
    std::fs::remove_file(program).expect("the program goes");
    check(&recorded);
}

#[test]
fn processes_of_a_millisecond_are_walked_too() {
    let Some(programs) = load(Options { counting: false, ..Options::default() }) else { return };
    let script = "i=0; while [ $i -lt 600 ]; do /usr/bin/dirname /a/b >/dev/null; i=$((i+1)); done";
    check(&record(programs, &["sh", "-c", script]));
}
