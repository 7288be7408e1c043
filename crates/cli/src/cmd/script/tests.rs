//! The output has perf's format, and readers of perf's output understand it.

use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};
use plumb_formats::folded;
use plumb_profile::{Dso, Mapping};

use super::*;
use crate::words::parsed;
use plumb_fixtures::Made;
use plumb_profile::Thread;

fn script(profile: &Profile, args: &[&str]) -> String {
    let args = parsed::<Args>("script", args).expect("they are taken");
    let mut text = Vec::new();
    write(profile, args.fields, &args.filters, &mut Output::plain(&mut text)).unwrap();
    String::from_utf8(text).unwrap()
}

fn example() -> Made {
    let mut made = Made::new();
    made.sample("web server/7/8", "_start@app;main:3+pick:9@app;send@libc.so;tcp_send@k", 1_001_001)
        .sample("web server/7/8", "main@app", 500)
        .sample("sh/9/9", "!;deep@app;0x123@libc.so", 1_001_001);
    made
}

#[test]
fn samples_look_as_perf_prints_them() {
    let mut made = example();
    let is_app = |dso: &Dso| made.profile.strings.get(dso.path) == "/opt/app";
    let app = made.profile.dsos.iter().find(|(_, dso)| is_app(dso)).unwrap().0;
    let process = made.profile.threads.rows()[0].process;
    let mapping =
        Mapping { process, dso: app, start: 0x5500_0001_0000, end: 0x5500_0002_0000, bias: 0x5500_0000_0000 };
    made.profile.mappings.push(mapping);
    let address = |name: &str| {
        let frames = made.profile.frames.iter().map(|(id, _)| id);
        let mut named = frames.filter(|&id| {
            let symbols = &made.profile.symbols;
            symbols
                .of(id)
                .iter()
                .any(|line| made.profile.strings.get(symbols.functions[line.function].name) == name)
        });
        made.profile.frames[named.next().unwrap()].address.0
    };
    let expected = format!(
        "web server     8 [000]     1.000000:    1001001 cpu-clock: 
\t{:>16x} tcp_send ([kernel.kallsyms])
\t{:>16x} send (/opt/libc.so)
\t{:>16x} pick (inlined)
\t{:>16x} main (/opt/app)
\t{:>16x} _start (/opt/app)

",
        address("tcp_send"),
        address("send"),
        address("pick") + 0x5500_0000_0000,
        address("pick") + 0x5500_0000_0000,
        address("_start") + 0x5500_0000_0000,
    );
    let printed = script(&made.profile, &["-F", "-symoff"]);
    assert!(printed.starts_with(&expected), "{printed}");
}

#[test]
fn fields_can_be_chosen() {
    let made = example();
    assert_eq!(
        script(&made.profile, &["-F", "comm,pid,tid,time"]),
        "      web server     7/8         1.000000: \n      web server     7/8         1.001000: \n              sh     9/9         1.002000: \n"
    );
    let lines = script(&made.profile, &["-F", "sym,srcline", "--comm", "web server"]);
    assert!(
        lines.starts_with("\n\t tcp_send\n\t send\n\t pick (inlined)\n  pick.c:9\n\t main\n  main.c:3\n"),
        "{lines}"
    );
}

#[test]
fn offsets_count_from_the_outlined_function() {
    let mut made = Made::new();
    made.sample("a", "main+pick@app", 1);
    let start = made.profile.symbols.functions.rows()[0].start.unwrap().0;
    let offset = made.profile.frames.rows()[0].address.0 - start;
    let printed = script(&made.profile, &["-F", "sym,symoff,dso"]);
    assert_eq!(printed, format!("\n\t pick+{offset:#x} (inlined)\n\t main+{offset:#x} (/opt/app)\n\n"));
}

#[test]
fn cuts_and_unknown_names_are_said() {
    let printed = script(&example().profile, &["--comm", "sh"]);
    assert!(printed.contains("             123 [unknown] (/opt/libc.so)\n"), "{printed}");
    assert!(printed.contains("               0 [stack deeper than its copy] ([cut])\n\n"), "{printed}");
}

#[test]
fn hostile_names_stay_on_their_line() {
    let mut made = Made::new();
    made.sample("a\u{1b}[2J/1/1", "two\nlines@app", 1);
    let printed = script(&made.profile, &[]);
    assert_eq!(printed.lines().count(), 3, "{printed}");
    assert!(!printed.contains('\u{1b}'));
}

/// Printed text is read back with threads, times, files, inlined calls and truncated stacks.
#[test]
fn what_is_printed_is_read_again() {
    let made = example();
    let printed = script(&made.profile, &["-F", "+pid"]);
    let back = plumb_formats::foreign::read(printed.as_bytes()).unwrap();
    assert_eq!(script(&back, &["-F", "+pid,-symoff"]), script(&made.profile, &["-F", "+pid,-symoff"]));
    assert_eq!(script(&back, &["-F", "comm,pid,tid,time,cpu,period,event"]).lines().count(), 3);
}

/// Checks that inferno's port of FlameGraph's stackcollapse-perf yields the stacks that `plumb fold` writes.
#[test]
fn collapsing_the_text_is_folding_the_profile() {
    let mut made = Made::new();
    made.sample("web server/7/8", "_start@app;main+pick+hash@app;send@libc.so;tcp_send@k", 11)
        .sample("web server/7/9", "_start@app;main+pick+hash@app;send@libc.so;tcp_send@k", 22)
        .sample("web server/7/8", "_start@app;main@app;fib@app;fib@app;fib@app", 5)
        .sample("sh/9/9", "!;deep@app;deeper@libc.so", 3)
        .sample("kworker-0:1/0/44", "worker_thread@k", 7);
    let mut collapsed = Vec::new();
    Folder::from(Options::default()).collapse(script(&made.profile, &[]).as_bytes(), &mut collapsed).unwrap();
    let mut folded = Vec::new();
    let options = folded::FoldedOptions { samples: false, ..Default::default() };
    folded::write(&made.profile, &options, &mut folded).unwrap();
    let sorted = |text: Vec<u8>| {
        let mut lines: Vec<String> = String::from_utf8(text).unwrap().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let collapsed = sorted(collapsed);
    assert_eq!(collapsed, sorted(folded));
    assert_eq!(collapsed.len(), 4);
}

/// Names that resemble other parts of their line are read back unchanged.
#[test]
fn names_that_look_like_something_else_are_read_again() {
    let comms = [
        "a 1|2 [0]",
        "a 1|2 [0] 5.5: 7 e:",
        "worker 2",
        "2",
        " x ",
        "#x",
        ":7",
        "a [000] 1.0: 1 x:",
        "\\x20",
        "1|1 1|1",
        "x  y",
    ];
    let mut made = Made::new();
    for comm in comms {
        made.sample("?/7/8", "main@app;f@lib (x) (deleted);g@( y;h@k", 5);
        let comm = made.profile.strings.add(&comm.replace('|', "/"));
        let process = made.profile.threads.rows()[0].process;
        let thread = made.profile.threads.push(Thread { process, tid: 8, comm });
        let mut sample = made.profile.samples.get(made.profile.samples.len() - 1).unwrap();
        (sample.thread, sample.time_ns) = (thread, sample.time_ns + 1000);
        made.profile.samples.push(sample);
    }
    for arguments in [&["-F", "-symoff"][..], &["-F", "+pid"], &[]] {
        let printed = script(&made.profile, arguments);
        let back = plumb_formats::foreign::read(printed.as_bytes()).unwrap();
        assert_eq!((back.samples.len(), back.meta.damaged_records), (2 * comms.len(), 0), "{printed}");
        let names: Vec<&str> =
            back.samples.iter().map(|sample| back.strings.get(back.threads[sample.thread].comm)).collect();
        let expected: Vec<String> =
            comms.iter().flat_map(|comm| ["?".to_owned(), comm.replace('|', "/")]).collect();
        assert_eq!(names, expected, "{printed}");
        let paths: Vec<&str> = back.dsos.iter().map(|(_, dso)| back.strings.get(dso.path)).collect();
        for path in ["/opt/lib (x) (deleted)", "/opt/( y"] {
            assert!(paths.contains(&path), "{paths:?}: {printed}");
        }
    }
}
