//! A recording by the library alone: no command line, no file, nothing printed.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use plumb_analyze::{Filter, Key, Report, ReportOptions, View};
use plumb_fixtures::{Requirement, compiles, needs};
use plumb_record::{Notices, Progress, RecordError, RecordRequest, record};
use plumb_target::{Launch, Prints, Target};

#[derive(Default)]
struct Noted {
    messages: Vec<String>,
    states: Vec<&'static str>,
}

impl Notices for Noted {
    fn message(&mut self, text: &str) {
        self.messages.push(text.to_owned());
    }

    fn progress(&mut self, progress: Progress<'_>) {
        let state = match progress {
            Progress::UntilSignal { .. } => "until a signal",
            Progress::Sampling { .. } => "sampling",
            Progress::Sampled => "sampled",
            Progress::Names(_) => "names",
            Progress::Named => "named",
        };
        if self.states.last() != Some(&state) {
            self.states.push(state);
        }
    }
}

fn command(program: impl Into<std::ffi::OsString>) -> Target {
    Target::Command(Launch { program: program.into(), arguments: Vec::new(), environment: Vec::new() })
}

#[test]
fn a_command_becomes_a_profile_with_names() {
    if !needs(Requirement::Perf) {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (program, times) = (folder.join("halves"), folder.join("halves.times"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/halves.c");
    if !compiles(Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(source)) {
        return;
    }
    let mut noted = Noted::default();
    let output = Prints::To(Arc::new(File::create(&times).unwrap()));
    let request = RecordRequest::new(command(&program)).printing(output);
    let profile = record(&request, &mut noted).unwrap();
    assert_eq!(profile.meta.exit_status, Some(3));
    assert_eq!(profile.meta.command, [program.to_str().unwrap()]);
    assert_eq!(noted.states.first(), Some(&"sampling"));
    assert!(noted.states.ends_with(&["named"]) && noted.states.contains(&"sampled"), "{:?}", noted.states);
    assert_eq!(noted.messages, [""; 0]);

    let filter = Filter::default();
    let view = View::new(&profile, &filter);
    let by_function = ReportOptions { keys: vec![Key::Symbol], children: false, ..ReportOptions::default() };
    let report = Report::new(&view, &filter, &by_function);
    let sampled = |name: &str| {
        let row = report.rows.iter().find(|row| view.frame(row.key.frame).name == name).unwrap();
        row.own.weight as f64
    };
    let printed = std::fs::read_to_string(times).unwrap();
    let truth: Vec<f64> = printed.split_whitespace().map(|time| time.parse().unwrap()).collect();
    let share = sampled("often") / (sampled("often") + sampled("seldom"));
    let expected = truth[0] / (truth[0] + truth[1]);
    // Five standard errors.
    let most = 5.0 * (expected * (1.0 - expected) / view.whole().samples as f64).sqrt();
    assert!((share - expected).abs() < most, "{share} of {expected} ± {most}");
}

#[test]
fn a_command_that_is_not_there_is_an_error_with_its_name() {
    if !needs(Requirement::Perf) {
        return;
    }
    let error = record(&RecordRequest::new(command("/nowhere/to/be/found")), &mut ()).unwrap_err();
    assert!(matches!(error, RecordError::Sampling(_)), "{error:?}");
    assert!(error.to_string().contains("/nowhere/to/be/found"), "{error}");
}
