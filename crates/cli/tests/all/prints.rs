//! The destination of a recorded command's output: never mixed with a report that a program or file takes from standard output.
//!
//! Needs perf_event_open; without it, the tests print so and are skipped.

use crate::spun::{folder, may_record, plumb, text};

/// Prints, and uses enough CPU time for a report.
const COMMAND: &str = "sh -c 'echo printed; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'";

/// Contents of standard output and standard error.
fn printed(command: &str, options: &[&str]) -> (String, String) {
    let folder = folder(&format!("prints-{command}{}", options.concat()));
    let words = shell_words::split(COMMAND).expect("it is quoted well");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let arguments = match command {
        "compare" => [&["compare"], options, &["--runs", "2", "--show-output", COMMAND, COMMAND]].concat(),
        _ => [&[command], options, &["--"], &words].concat(),
    };
    let output = plumb(&folder, &arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

fn is_there(text: &str) -> bool {
    text.lines().any(|line| line == "printed")
}

#[test]
fn reports_for_programs_stand_alone_on_standard_output() {
    if !may_record() {
        return;
    }
    for command in ["explain", "procs", "kernel", "compare"] {
        let (report, errors) = printed(command, &["--json"]);
        serde_json::from_str::<serde_json::Value>(&report)
            .unwrap_or_else(|error| panic!("{error}: {report}"));
        assert!(is_there(&errors), "{command}: {errors}");
    }
    for (command, option, begin) in [
        ("explain", "--md", "# Hotspots"),
        ("explain", "--html", "<!doctype html>"),
        ("procs", "--csv", "depth,"),
        ("compare", "--md", ""),
    ] {
        let (report, errors) = printed(command, &[option]);
        assert!(report.starts_with(begin) && !is_there(&report), "{command} {option}: {report}");
        assert!(is_there(&errors), "{command} {option}: {errors}");
    }
}

/// As without plumb, if a person reads both.
#[test]
fn beside_text_a_command_prints_where_it_would() {
    if !may_record() {
        return;
    }
    for command in ["explain", "procs"] {
        let (output, errors) = printed(command, &[]);
        assert!(is_there(&output) && !is_there(&errors), "{command}: {output}{errors}");
    }
}
