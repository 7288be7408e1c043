//! The programs in a kernel that takes them, as root: they walk what runs, and leave nothing behind.

use std::time::Duration;

use plumb_capture_bpf::{LoadError, Options, Programs};
use plumb_capture_perf::{Assistant, Launch, Recorder, Target};

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

#[test]
fn a_command_is_walked_in_the_kernel_to_its_root() {
    let Some(programs) = load(Options::default()) else { return };
    let program = burn();
    let launch =
        Launch { program: program.clone().into(), arguments: vec!["1500".into()], environment: Vec::new() };
    let options = plumb_capture_perf::Options::default();
    let target = Target::Command(launch);
    let mut recorder =
        Recorder::start_with(&target, &options, Some(Box::new(programs))).expect("recording begins");
    while recorder.step(Duration::from_millis(100)).expect("recording goes on").is_none() {}
    let recorded = recorder.finish();
    std::fs::remove_file(program).expect("the program goes");
    let statistics = &recorded.statistics;
    let handed_over = recorded.handed_over.expect("there was something to hand over");
    let samples = recorded.profile.samples.len() as u64;
    assert_eq!(statistics.samples, samples, "counted samples are samples");
    let asked = recorded.target_cpu.expect("a command's time is known").total().as_secs_f64() * 999.0;
    assert!((samples as f64) > asked * 0.9 && (samples as f64) < asked * 1.1, "{samples} of {asked}");
    assert!(statistics.complete * 100 >= samples * 98, "{statistics:?}");
    assert!(handed_over.walked * 100 >= samples * 60, "{handed_over:?} of {samples}");
}
