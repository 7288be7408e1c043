//! Names come from files and programs that may be malicious: no command lets one control a terminal, reverse the direction of a line, break
//! it, or inject HTML into a page or a report; and formats that are read back restore every name.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::spun::{folder, text};
use plumb_formats::escape::{is_unsafe, unescaped};
use plumb_formats::native;
use plumb_profile::*;
use serde_json::Value;

/// A name with every kind of harmful text. Line breaks are followed by `xnextx`, which is not a word of any report.
fn hostile(what: &str) -> String {
    format!(
        "{what}\x1b[2J\x1b]0;title\x07\u{9b}31m\u{202e}\u{2066}\u{200b}\u{feff}<img src=x onerror=alert(1)>`|*_[a](b)&amp;\n\rxnextx;\t\u{2028}\
         xnextx \\x1b\\x3b (b)+0x1 "
    )
}

/// A recording in which every text is hostile; time is counted, so that all commands have output.
fn recording(path: &Path) {
    let mut profile = Profile::default();
    let meta = &mut profile.meta;
    meta.command = vec![hostile("command"), hostile("argument")];
    [meta.host, meta.kernel, meta.recorder] = ["host", "kernel", "recorder"].map(hostile);
    meta.arch = "x86_64".into();
    meta.warnings = vec![hostile("warning")];
    (meta.symbolized, meta.frequency_hz, meta.cpus) = (true, Some(999), 2);
    (meta.start_unix_ns, meta.duration_ns) = (1_700_000_000_000_000_000, 1_000_000_000);
    let mut add = |text: &str| profile.strings.add(text);
    let (clock, ns, other, unit) =
        (add("cpu-clock"), add("ns"), add(&hostile("event")), add(&hostile("unit")));
    let events = [Event { name: clock, unit: ns }, Event { name: other, unit }];
    let exe = add(&format!("/bin/{}", hostile("exe")));
    let paths = [add(&format!("/lib/{}", hostile("dso"))), add("[kernel.kallsyms]"), add(&hostile("module"))];
    let comms = ["thread", "=cmd", "#hash", "a 1/2 [0]"].map(|name| add(&hostile(name)));
    let functions: Vec<StringId> = (0..9).map(|number| add(&hostile(&format!("function{number}")))).collect();
    let (linkage, source) = (add(&hostile("linkage")), add(&format!("/src/{}.c", hostile("source"))));
    let events = events.map(|event| profile.events.push(event));
    let kinds = [DsoKind::File, DsoKind::Kernel, DsoKind::KernelModule];
    let spaces = [AddressSpace::Svma, AddressSpace::Avma, AddressSpace::Avma];
    let dsos = [0, 1, 2].map(|at| {
        profile.dsos.add(Dso { path: paths[at], build_id: None, kind: kinds[at], addresses: spaces[at] })
    });
    let process = profile.processes.push(Process { pid: 7, ppid: 1, exe });
    let threads: Vec<ThreadId> =
        (8..).zip(comms).map(|(tid, comm)| profile.threads.push(Thread { process, tid, comm })).collect();
    let frames: Vec<FrameId> = functions
        .iter()
        .enumerate()
        .map(|(at, &name)| {
            let (dso, kind) =
                if at < 7 { (dsos[0], FrameKind::User) } else { (dsos[at - 6], FrameKind::Kernel) };
            let address = Address(if at < 7 { 0x1000 } else { 0xffff_ffff_8000_0000 } + 0x100 * at as u64);
            let found = Found::Cfi;
            let frame = profile.frames.add(Frame { kind, dso: Some(dso), address, is_return: at > 0, found });
            let function = |name, start| Function {
                name,
                linkage_name: linkage,
                dso: Some(dso),
                start,
                source_file: source,
                start_line: 0,
            };
            let outer = profile.symbols.functions.add(function(name, Some(address)));
            let inner = profile.symbols.functions.add(function(functions[(at + 1) % 7], None));
            let line = |function, inlined| Line { function, file: source, line: 12, inlined };
            let lines = [line(inner, true), line(outer, false)];
            profile.symbols.set(frame, if at == 3 { &lines } else { &lines[1..] });
            frame
        })
        .collect();
    for number in 0..40 {
        let mut leaf_first: Vec<FrameId> = frames[..4 + number % 3].to_vec();
        if number % 4 == 0 {
            leaf_first.splice(0..0, [frames[8], frames[7]]);
        }
        let (thread, stack) = (threads[number % 4], profile.add_stack(&leaf_first));
        for event in &events[..1 + number % 2] {
            let (time_ns, weight, event) = (1_000_000 * number as u64, 1_001_001, *event);
            profile.samples.push(Sample { time_ns, thread, cpu: 1, event, stack, syscall: None, weight });
        }
    }
    native::write(&profile, File::create(path).expect("the folder is there")).expect("it can be written");
}

fn run(folder: &Path, arguments: &[&str], is_coloured: bool) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).env_remove("NO_COLOR");
    if is_coloured {
        command.env("CLICOLOR_FORCE", "1");
    }
    command.output().expect("plumb is there")
}

/// Fails if the text contains forbidden characters.
fn check(text: &str, is_coloured: bool, what: &str) {
    let mut plain = text.to_owned();
    if is_coloured {
        // Only bold and red styles, where allowed.
        while let Some(at) = plain.find("\x1b[") {
            let length = plain[at + 2..].find(|one: char| !matches!(one, '0'..='9' | ';')).unwrap_or(0);
            assert_eq!(plain[at + 2 + length..].chars().next(), Some('m'), "{what}: {plain:?}");
            plain.replace_range(at..at + 3 + length, "");
        }
    }
    for (number, line) in plain.lines().enumerate() {
        let found = line.chars().find(|&one| one != '\t' && is_unsafe(one));
        assert_eq!(found, None, "{what}: line {number}: {line:?}");
        assert!(
            !line.trim_start().starts_with("xnextx"),
            "{what}: a name has broken line {number}: {line:?}"
        );
    }
}

/// The text without Markdown code spans.
fn without_code(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut rest = line;
        while let Some(at) = rest.find('`') {
            let (before, run) = rest.split_at(at);
            out.push_str(before);
            if before.ends_with('\\') {
                out.push('`');
                rest = &run[1..];
                continue;
            }
            let fence = run.len() - run.trim_start_matches('`').len();
            let inside = &run[fence..];
            // A code span ends with the next run of equally many backticks.
            let mut from = 0;
            let end = loop {
                let Some(next) = inside[from..].find('`').map(|next| from + next) else { break None };
                let length = inside[next..].len() - inside[next..].trim_start_matches('`').len();
                if length == fence {
                    break Some(next + length);
                }
                from = next + length;
            };
            assert!(end.is_some() || line.starts_with("```"), "a code span has no end: {line}");
            rest = end.map_or("", |end| &inside[end..]);
        }
        out.push_str(rest);
        out.push('\n');
    }
    out
}

const FILE: &str = "evil\x1b[31m\u{202e}.plumb";

#[test]
fn no_command_shows_what_steers_or_hides() {
    let folder = folder("hostile-names");
    recording(&folder.join(FILE));
    let missing = hostile("missing");
    let function = hostile("function2");
    let event = hostile("event");
    let commands: Vec<Vec<&str>> = [
        &["report"][..],
        &["report", "--top-down", "--min", "0"],
        &["report", "--bottom-up", "--full-names"],
        &["report", "--callers", &function],
        &["report", "--callees", "/function4/"],
        &["report", "--callers", &missing],
        &["report", "--callers", "function"],
        &["report", "--event", &event],
        &["report", "--event", &missing],
        &["report", "--json"],
        &["report", "--json", "--top-down"],
        &["report", "--csv"],
        &["report", "--csv", "--top-down"],
        &["report", "-n", "-s", "comm,pid,tid,exe,dso,sym,srcline"],
        &["report", "-s", "comm,pid,tid,exe,dso,sym,srcline", "--csv"],
        &["report", "--comm", &missing],
        &["annotate", "--symbol", &function],
        &["annotate", &function],
        &["annotate", &missing],
        &["procs"],
        &["procs", "--json"],
        &["procs", "--csv"],
        &["kernel"],
        &["kernel", "--stacks=5"],
        &["kernel", "--json"],
        &["kernel", "--csv"],
        &["explain"],
        &["explain", "--full"],
        &["explain", "--native"],
        &["explain", "--json"],
        &["explain", "--md"],
        &["explain", "--html"],
        &["diff", FILE],
        &["diff", FILE, "--by", "path"],
        &["diff", FILE, "--by", "line"],
        &["diff", FILE, "--by", "syscall"],
        &["diff", FILE, "--json"],
        &["diff", FILE, "--md"],
        &["diff", FILE, "--md", "--by", "line"],
        &["diff", FILE, "--event", &event, "--md"],
        &["script"],
        &["script", "-F", "+pid,+srcline"],
        &["fold"],
        &["fold", "--annotate", "--weights"],
        &["fold", "--event", &event],
        &["flame", "-o", "out.html"],
        &["flame", "-o", "out.svg"],
        &["flame", "-o", "no/such/\x1b[2Jfolder.html"],
        &["doctor"],
        &["doctor", "--json"],
        &["view"],
        &["export", "-o", "-", "--format", "speedscope"],
        &["export", "-o", "-", "--format", "firefox"],
        &["export", "-o", "-", "--format", "trace"],
        &["export", "-o", "-", "--format", "callgrind"],
        &["export", "-o", "-", "--format", "folded"],
        &["export", "-o", "-", "--format", "perf-script"],
        &["export", "-o", "-", "--format", "csv"],
        &["export", "-o", "\x1b[2J.unknown"],
    ]
    .iter()
    .map(|arguments| arguments.to_vec())
    .collect();
    for arguments in &commands {
        let all = [&arguments[..], &[FILE]].concat();
        for is_coloured in [false, true] {
            let output = run(&folder, &all, is_coloured);
            let what = format!("{arguments:?}");
            let printed = String::from_utf8(output.stdout).expect("text is UTF-8");
            check(&printed, is_coloured, &what);
            check(&text(&output.stderr), is_coloured, &what);
            assert!(!text(&output.stderr).contains("panicked"), "{what}: {}", text(&output.stderr));
            if arguments.contains(&"--md") {
                let words =
                    without_code(&printed).replace("<sub>", "").replace("</sub>", "").replace("\\<", "");
                assert!(!words.contains('<'), "{what}: {words}");
                assert!(printed.contains("function"), "{what}: {printed}");
            }
            if arguments.contains(&"--html") {
                assert!(!printed.contains("<img") && printed.contains("&lt;img"), "{what}");
            }
        }
    }
    for page in ["out.html", "out.svg"] {
        let page = std::fs::read_to_string(folder.join(page)).expect("it was drawn");
        assert!(!page.contains("<img src=x"));
        // A page's names are compressed; its visible text is its title.
        let shown = page
            .split_once("</title>")
            .map_or(&page[..], |(head, _)| &head[head.find("<title>").unwrap_or(0)..]);
        // The last of these is plumb's own: it distinguishes boxes with the same name.
        let found = shown.chars().find(|&one| !matches!(one, '\n' | '\t' | '\u{2060}') && is_unsafe(one));
        assert_eq!(found, None);
    }
    let output = run(&folder, &["report", &missing], false);
    check(&text(&output.stderr), false, "a file that isn't there");
    assert!(!output.status.success());
}

/// Commands that run a program: its name and arguments are shown.
#[test]
fn no_command_line_steers_the_terminal() {
    let folder = folder("hostile-command");
    let program = "evil\x1b[31m\u{202e}";
    std::fs::write(folder.join(program), "#!/bin/sh\nexit 0\n").expect("the folder is there");
    std::fs::set_permissions(folder.join(program), PermissionsExt::from_mode(0o755)).expect("it is ours");
    let program = format!("./{program}");
    let quoted = format!("'{program}' '{}'", hostile("argument"));
    let argument = hostile("argument");
    for arguments in [
        &["record", "-o", "out\x1b[2J.plumb", "--", &program, &argument][..],
        &["stat", "--", &program, &argument],
        &["stat", "--json", "--", &program, &argument],
        &["trace", "--", &program, &argument],
        &["trace", "--json", "--", &program, &argument],
        &["compare", "--runs", "2", "--warmup", "0", &quoted, &program],
        &["compare", "--runs", "2", "--warmup", "0", "--md", &quoted, &program],
        &["compare", "--runs", "2", "--warmup", "0", "--json", &quoted, &program],
        &["explain", "--", &program],
        &["record", "--", "./no\x1b[2Jsuch"],
    ] {
        let output = run(&folder, arguments, false);
        check(&text(&output.stdout), false, &format!("{arguments:?}"));
        check(&text(&output.stderr), false, &format!("{arguments:?}"));
    }
}

/// Weights by thread and function, with the names of both.
fn spent(folder: &Path, file: &str, keys: &str) -> BTreeMap<(String, String), u64> {
    let output = run(folder, &["report", "--json", "-s", keys, "--event", "cpu-clock", file], false);
    assert!(output.status.success(), "{file}: {}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let mut spent = BTreeMap::new();
    for row in report["reports"][0]["rows"].as_array().expect("there are rows") {
        let name = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        *spent.entry((name("comm"), name("sym"))).or_default() +=
            row["self_weight"].as_u64().expect("a number");
    }
    spent
}

#[test]
fn every_name_comes_back_as_it_was() {
    let folder = folder("hostile-round");
    recording(&folder.join("x.plumb"));
    let original = spent(&folder, "x.plumb", "comm,sym");
    assert!(original.keys().any(|(comm, sym)| *comm == hostile("a 1/2 [0]") && *sym == hostile("function0")));
    for name in ["x.pb.gz", "x.speedscope.json", "x.perf.txt"] {
        let output = run(&folder, &["export", "--event", "cpu-clock", "-o", name, "x.plumb"], false);
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        assert_eq!(spent(&folder, name, "comm,sym"), original, "{name}");
    }
    // This format has no unit.
    let read = |name: &str, comm: bool| -> BTreeMap<(String, String), u64> {
        let output = run(&folder, &["report", "--json", "-s", "comm,sym", name], false);
        let report: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        let mut spent = BTreeMap::new();
        for row in report["reports"][0]["rows"].as_array().expect("there are rows") {
            let text = |key: &str| row[key].as_str().expect("a text").to_owned();
            // With several events each has a thread of its own, named after both.
            let comm = if comm { text("comm").replace(" (cpu-clock)", "") } else { String::new() };
            let weight = row["self_weight"].as_u64().expect("a number");
            *spent.entry((comm, text("sym"))).or_default() += weight;
        }
        spent.retain(|_, weight| *weight > 0);
        spent
    };
    let of_original = |comm: bool| {
        let mut sums: BTreeMap<(String, String), u64> = BTreeMap::new();
        for ((name, sym), weight) in original.iter().filter(|(_, weight)| **weight > 0) {
            *sums.entry((if comm { name.clone() } else { String::new() }, sym.clone())).or_default() +=
                weight;
        }
        sums
    };
    run(&folder, &["export", "--event", "cpu-clock", "-o", "x.firefox.json", "x.plumb"], false);
    assert_eq!(read("x.firefox.json", true), of_original(true));
    let weighed = run(&folder, &["fold", "--weights", "x.plumb"], false);
    std::fs::write(folder.join("x.folded"), weighed.stdout).expect("the folder is there");
    assert_eq!(read("x.folded", false), of_original(false));
    // Folding equals exporting folded stacks.
    let folded = run(&folder, &["fold", "x.plumb"], false);
    run(&folder, &["export", "--event", "cpu-clock", "-o", "y.folded", "x.plumb"], false);
    assert_eq!(folded.stdout, std::fs::read(folder.join("y.folded")).expect("it was written"));
}

/// A spreadsheet's reader finds the same number of fields in each line, no formula, and the names in the documented escapes.
#[test]
fn a_spreadsheet_gets_names_and_no_formulas() {
    let folder = folder("hostile-csv");
    recording(&folder.join("x.plumb"));
    let output =
        run(&folder, &["export", "--event", "cpu-clock", "-o", "-", "--format", "csv", "x.plumb"], false);
    let mut comms = Vec::new();
    for record in csv::Reader::from_reader(&output.stdout[..]).records() {
        let record = record.expect("all lines have as many fields");
        assert_eq!(record.len(), 9);
        assert!(record.iter().all(|field| !field.starts_with(['=', '+', '-', '@'])), "{record:?}");
        let names: Vec<String> = record[8].split(';').map(|name| unescaped(name).into_owned()).collect();
        assert!(
            names.iter().all(|name| (0..9).any(|number| *name == hostile(&format!("function{number}")))),
            "{names:?}"
        );
        comms.push(unescaped(&record[7]).into_owned());
    }
    assert_eq!(comms.len(), 40);
    assert!(comms.contains(&hostile("=cmd")), "{comms:?}");
}

/// Names longer than the largest width of a format: 65,535.
#[test]
fn the_longest_names_are_shown() {
    let folder = folder("hostile-long");
    let long = "x".repeat(100_000);
    let script = format!("{long} 1/1 [000] 1.000000: 1 {long}: \n\t 1000 {long}+0x0 (/{long})\n\n");
    std::fs::write(folder.join("x"), script).expect("the folder is there");
    for arguments in [
        &["report", "-s", "comm,dso,sym,exe"][..],
        &["report", "--full-names"],
        &["report", "--top-down"],
        &["script"],
        &["script", "-F", "comm,tid,event"],
        &["fold"],
        &["procs"],
        &["diff", "x"],
        &["diff", "--md", "x"],
        &["doctor"],
        &["export", "-o", "-", "--format", "perf-script"],
        &["export", "-o", "-", "--format", "callgrind"],
        &["export", "-o", "-", "--format", "csv"],
        &["flame", "-o", "x.svg"],
    ] {
        let output = run(&folder, &[arguments, &["x"]].concat(), false);
        assert!(output.status.success(), "{arguments:?}: {:.300}", text(&output.stderr));
        // Nothing is padded to the longest name.
        assert!(output.stdout.len() < 2_000_000, "{arguments:?}: {} bytes", output.stdout.len());
    }
}
