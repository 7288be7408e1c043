//! Profiles of other tools: what plumb writes it reads again, as far as the format holds it, and what others write.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::io::Write;

use flate2::write::GzEncoder;
use plumb_fixtures::Made;
use plumb_formats::foreign::{self, ForeignError};
use plumb_formats::{firefox, folded, pprof, speedscope};
use plumb_profile::*;

/// Parts of a profile that a format is expected to keep.
#[derive(Clone, Copy)]
struct Kept {
    threads: bool,
    lines: bool,
    inlined: bool,
    files: bool,
}

/// Returns weight and number of samples by the kept parts: thread, and stack from the outermost frame.
fn told(profile: &Profile, kept: Kept) -> BTreeMap<String, (u64, u64)> {
    let text = |id| profile.strings.get(id);
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for sample in profile.samples.iter() {
        let thread = &profile.threads[sample.thread];
        let pid = profile.processes[thread.process].pid;
        let mut key = String::new();
        if kept.threads {
            key = format!("{}/{pid}/{}", text(thread.comm), thread.tid);
        }
        let mut frames: Vec<FrameId> = profile.frames_of(sample.stack).collect();
        frames.reverse();
        for id in frames {
            let frame = &profile.frames[id];
            if let Some(cut) = frame.cut() {
                key += &format!(";[{}]", cut.text());
                continue;
            }
            for line in profile.symbols.of(id).iter().rev() {
                let function = &profile.symbols.functions[line.function];
                let inlined = if kept.inlined && line.inlined { "+" } else { "" };
                key += &format!(";{inlined}{}", text(function.name));
                if kept.lines {
                    key += &format!(" {}:{}", text(line.file), line.line);
                }
            }
            if kept.files {
                let dso = &profile.dsos[frame.dso.unwrap()];
                key += &format!(" in {} {:?} {:?}", text(dso.path), dso.kind, frame.kind);
            }
        }
        let sum = sums.entry(key).or_default();
        *sum = (sum.0 + sample.weight, sum.1 + 1);
    }
    sums
}

/// Threads that share names, inlined calls, the kernel, recursion, a cut stack, equal stacks several times.
fn example() -> Made {
    let mut made = Made::new();
    made.sample("web server/7/8", "_start@app;main:3+pick:9@app;send@libc.so;tcp_send@k", 1_001_001)
        .sample("web server/7/8", "_start@app;main:3+pick:9@app;send@libc.so;tcp_send@k", 1_001_002)
        .sample("web server/7/9", "_start@app;main:3+pick:9+hash:4@app", 500)
        .sample("web server/7/8", "_start@app;main@app;fib@app;fib@app;fib@app", 5_000_000_000)
        .sample("sh/9/9", "!;deep@app;deeper@libc.so", 3)
        .sample("sh/9/9", "main@app", 77);
    made
}

fn total(profile: &Profile) -> u64 {
    profile.samples.iter().map(|sample| sample.weight).sum()
}

#[test]
fn pprof_keeps_threads_lines_files_and_counts() {
    let mut made = example();
    made.profile.meta.recorder = "plumb 0.1.0".into();
    let mut bytes = Vec::new();
    pprof::write(&made.profile, &mut bytes).unwrap();
    let back = foreign::read(&bytes).unwrap();
    let kept = Kept { threads: true, lines: true, inlined: true, files: true };
    assert_eq!(told(&back, kept), told(&made.profile, kept));
    let event = &back.events.rows()[0];
    assert_eq!((back.strings.get(event.name), back.strings.get(event.unit)), ("cpu-clock", "ns"));
    assert_eq!(back.events.len(), 1);
    assert!(!back.meta.untold.cuts, "plumb marked them");
}

#[test]
fn firefox_keeps_threads_lines_files_and_times() {
    let made = example();
    let mut bytes = Vec::new();
    firefox::write(&made.profile, &mut bytes).unwrap();
    let back = foreign::read(&bytes).unwrap();
    let kept = Kept { threads: true, lines: true, inlined: true, files: true };
    assert_eq!(told(&back, kept), told(&made.profile, kept));
    let times = |profile: &Profile| -> Vec<u64> {
        profile.samples.iter().map(|sample| sample.time_ns - profile.meta.start_ns).collect()
    };
    assert_eq!(times(&back), times(&made.profile));
}

#[test]
fn speedscope_keeps_threads_and_lines() {
    let made = example();
    let mut bytes = Vec::new();
    speedscope::write(&made.profile, &mut bytes).unwrap();
    let back = foreign::read(&bytes).unwrap();
    let kept = Kept { threads: true, lines: true, inlined: false, files: false };
    assert_eq!(told(&back, kept), told(&made.profile, kept));
}

#[test]
fn folded_stacks_come_back_as_the_same_text() {
    let mut made = example();
    // A stack whose innermost frame has neither a name nor an address in brackets.
    made.sample("sh/9/9", "main@app;sys_read@k", 77);
    for annotate in [false, true] {
        let options = folded::FoldedOptions { annotate, samples: true, ..folded::FoldedOptions::default() };
        let write = |profile: &Profile| {
            let mut bytes = Vec::new();
            folded::write(profile, &options, &mut bytes).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        let text = write(&made.profile);
        let back = foreign::read(text.as_bytes()).unwrap();
        assert_eq!(write(&back), text);
        assert_eq!(back.samples.len(), made.profile.samples.len());
    }
}

#[test]
fn annotated_names_are_inlined_calls_and_the_kernel() {
    let profile =
        foreign::read(b"# comment\nsh;main;inner_[i];deep_[i];read_[k];jitted_[j] 3\r\n\n").unwrap();
    let kept = Kept { threads: false, lines: false, inlined: true, files: true };
    let expected = ";sh in [unknown] File User;main;+inner;+deep in [unknown] File User;read in [kernel.kallsyms] Kernel Kernel;jitted \
                    in [unknown] File User";
    assert_eq!(told(&profile, kept), [(expected.to_owned(), (3, 3))].into());
    assert!(profile.meta.warnings[0].contains("neither times"), "{:?}", profile.meta.warnings);
    assert!(profile.meta.untold.cuts, "who knows whether main is all there was");
}

#[test]
fn counts_become_samples_up_to_a_limit() {
    let few = foreign::read(b"a;b 1999999\na 1\n").unwrap();
    assert_eq!((few.samples.len(), total(&few)), (2_000_000, 2_000_000));
    // Nanoseconds, say.
    let many = foreign::read(b"a;b 2000000000\na 12.5\n").unwrap();
    assert_eq!((many.samples.len(), total(&many)), (2, 2_000_000_013));
    let warnings = many.meta.warnings.join("\n");
    assert!(warnings.contains("2000000013 samples") && warnings.contains("fractions"), "{warnings}");
}

#[test]
fn fractions_of_counts_keep_their_sum() {
    for (counts, sum) in
        [(vec!["0.4"; 10], 4), (vec!["1.5", "2.5"], 4), (vec!["0.1"; 1000], 100), (vec!["0.3", "7"], 7)]
    {
        let lines = counts.iter().enumerate().map(|(at, count)| format!("a;x{at} {count}\n"));
        let profile = foreign::read(lines.collect::<String>().as_bytes()).unwrap();
        assert_eq!(total(&profile), sum, "{counts:?}");
        assert!(profile.meta.warnings[0].contains("have fractions"), "{:?}", profile.meta.warnings);
    }
    // A flat profile in seconds is read too.
    assert_eq!(total(&foreign::read(b"f 0.4\ng 0.4\nh 2.2\n").unwrap()), 3);
}

#[test]
fn what_is_no_folded_stack_is_said_with_its_line() {
    let error = foreign::read(b"a;b 12\n\na;c\n").unwrap_err();
    assert!(matches!(error, ForeignError::Line { line: 3, .. }), "{error}");
    let error = foreign::read(b"a;b 12 13\na 0 7\n").unwrap_err();
    assert!(error.to_string().contains("difference"), "{error}");
}

/// As the schema of speedscope has it.
#[test]
fn events_of_speedscope_are_taken_apart() {
    let file = br#"{"$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": "main"}, {"name": "work", "file": "w.py", "line": 7, "col": 1}]},
        "profiles": [
          {"type": "evented", "name": "MainThread", "unit": "milliseconds", "startValue": 0, "endValue": 10,
           "events": [{"type": "O", "frame": 0, "at": 1}, {"type": "O", "frame": 1, "at": 2.5},
                      {"type": "C", "frame": 1, "at": 6}, {"type": "C", "frame": 0, "at": 10}]},
          {"type": "sampled", "name": "heap", "unit": "bytes", "startValue": 0, "endValue": 3, "samples": [[0, 1], []],
           "weights": [4096, 1]}]}"#;
    let profile = foreign::read(file).unwrap();
    let kept = Kept { threads: false, lines: true, inlined: false, files: false };
    let expected = [
        (";main :0".to_owned(), (5_500_000, 2)),
        (";main :0;work w.py:7".to_owned(), (3_500_000 + 4096, 2)),
        (String::new(), (1, 1)),
    ];
    assert_eq!(told(&profile, kept), expected.into());
    let names: Vec<&str> =
        profile.events.rows().iter().map(|event| profile.strings.get(event.name)).collect();
    assert_eq!(names, ["time", "bytes"]);
    let threads: Vec<&str> =
        profile.threads.rows().iter().map(|thread| profile.strings.get(thread.comm)).collect();
    assert_eq!(threads, ["MainThread", "heap"]);
}

#[test]
fn speedscope_that_can_not_be_is_refused_with_its_profile() {
    let file = |profile: &str| {
        format!(r#"{{"shared": {{"frames": [{{"name": "main"}}]}}, "profiles": [{profile}]}}"#)
    };
    for (profile, word) in [
        (r#"{"type": "sampled", "samples": [[0]], "weights": []}"#, "0 weights"),
        (r#"{"type": "sampled", "samples": [[3]], "weights": [1]}"#, "no frame 3"),
        (r#"{"type": "evented", "events": [{"type": "C", "frame": 0, "at": 1}]}"#, "not entered last"),
        (r#"{"type": "folded"}"#, "folded"),
    ] {
        let error = foreign::read(file(profile).as_bytes()).unwrap_err();
        assert!(matches!(error, ForeignError::Row { table: "profiles", row: 0, .. }), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
}

/// As a newer Firefox Profiler has it (version 75): all tables shared, callers by distance, what is missing by flags.
#[test]
fn a_new_firefox_profile_is_read() {
    let file = br#"{"meta": {"preprocessedProfileVersion": 75, "interval": 1, "startTime": 1000.5, "product": "demo",
          "categories": [{"name": "Other", "color": "grey"}, {"name": "Kernel", "color": "orange"}]},
        "libs": [{"name": "app", "path": "/opt/app", "codeId": "0102030405060708"}],
        "shared": {
          "stringArray": ["main", "inner", "read", "a.c", "jit"],
          "stackTable": {"length": 4, "frame": [0, 1, 2, 3], "prefixOffset": [0, 1, 1, 3]},
          "frameTable": {"length": 4, "flags": [18, 19, 4, 0], "address": [16, 16, 0, 0], "lib": [0, 0, 0, 0],
                         "category": [0, 0, 1, 1], "func": [0, 1, 2, 3], "line": [3, 9, 5, 5]},
          "funcTable": {"length": 4, "flags": [8, 8, 0, 0], "name": [0, 1, 2, 4], "resource": [0, 0, 0, 0], "source": [0, 0, 0, 0]},
          "sources": {"length": 1, "filename": [3]}},
        "threads": [{"name": "GeckoMain", "pid": "12.1", "tid": 13,
          "samples": {"length": 3, "stack": [2, null, 3], "timeDeltas": [1, 0.5, 2], "weight": null, "weightType": "samples"}}]}"#;
    let profile = foreign::read(file).unwrap();
    let kept = Kept { threads: true, lines: true, inlined: true, files: true };
    let expected = [
        (
            "GeckoMain/12/13;main a.c:3;+inner a.c:9 in /opt/app File User;read :0 in [kernel.kallsyms] Kernel Kernel".to_owned(),
            (1, 1),
        ),
        (
            "GeckoMain/12/13;main a.c:3 in /opt/app File User;jit :0 in [unknown] File User".to_owned(),
            (1, 1),
        ),
    ];
    assert_eq!(told(&profile, kept), expected.into());
    assert_eq!(profile.samples.get(1).unwrap().time_ns, 3_500_000);
    let newer = String::from_utf8(file.to_vec()).unwrap().replace("Version\": 75", "Version\": 76");
    let error = foreign::read(newer.as_bytes()).unwrap_err();
    assert!(matches!(error, ForeignError::Newer { found: 76, known: 75 }), "{error}");
}

/// Reads the output of samply's library.
#[test]
fn what_samply_writes_is_read() {
    use fxprof_processed_profile as fx;
    let start = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(5);
    let mut profile = fx::Profile::new("demo", start.into(), fx::SamplingInterval::from_hz(1000.0));
    let time = |ms: f64| fx::Timestamp::from_millis_since_reference(ms);
    let process = profile.add_process("demo", 7, time(0.0));
    let thread = profile.add_thread(process, 8, time(0.0), false);
    profile.set_thread_name(thread, "worker");
    let kernel = profile.add_category("Kernel", fx::CategoryColor::Orange);
    for (at, names) in [(1.0, vec!["main", "work"]), (2.0, vec!["main"])] {
        let frames: Vec<fx::FrameInfo> = names
            .iter()
            .map(|name| fx::FrameInfo {
                frame: fx::Frame::Label(profile.intern_string(name)),
                category_pair: if *name == "work" { kernel.into() } else { fx::CategoryHandle::OTHER.into() },
                flags: fx::FrameFlags::empty(),
            })
            .collect();
        let stack = profile.intern_stack_frames(thread, frames.into_iter());
        profile.add_sample(thread, time(at), stack, fx::CpuDelta::ZERO, 2);
    }
    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::default());
    serde_json::to_writer(&mut packed, &profile).unwrap();
    let back = foreign::read(&packed.finish().unwrap()).unwrap();
    let kept = Kept { threads: true, lines: false, inlined: false, files: true };
    let expected = [
        ("worker/7/8;main in [unknown] File User;work in [kernel.kallsyms] Kernel Kernel".to_owned(), (2, 1)),
        ("worker/7/8;main in [unknown] File User".to_owned(), (2, 1)),
    ];
    assert_eq!(told(&back, kept), expected.into());
    assert_eq!((back.meta.start_unix_ns, back.meta.frequency_hz), (5_001_000_000, Some(1000)));
}

/// As py-spy's raw output has it of threads that are in no frame.
#[test]
fn a_stack_without_frames_is_a_sample_too() {
    for text in [" 3\nmain;work 5\n", "main;work 5\n 3\n"] {
        let profile = foreign::read(text.as_bytes()).unwrap();
        assert_eq!(profile.samples.len(), 8);
        let empty = profile.samples.iter().filter(|sample| sample.stack.is_none()).count();
        assert_eq!(empty, 3, "{text:?}");
    }
    assert!(foreign::read(b" 3\n 4\n").is_err(), "that may be anything");
}

#[test]
fn what_is_unknown_is_said() {
    for (bytes, words) in [
        (&b""[..], "nothing"),
        (b"Dear reader,\nhow are you?\n", "neither folded stacks"),
        (b"time_ns,event,unit,weight,cpu,pid,tid,comm,stack\n", "samples in CSV"),
        (b"{\"a\": 1}", "JSON of an unknown kind"),
        (b"[]", "list"),
        (b"{\"meta\": {\"version\": 24}, \"threads\": []}", "Gecko"),
        (b"\x00\x01\x02", "unknown kind"),
        (b"{\"head\": {}, \"samples\": []}", "heap profile of V8"),
    ] {
        let error = foreign::read(bytes).unwrap_err();
        assert!(matches!(error, ForeignError::Unknown { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    let error = foreign::read(b"{\"a\": \n  tru}").unwrap_err();
    assert!(matches!(error, ForeignError::Json { line: 2, .. }), "{error}");
}

/// The text of `perf script` with everything that it can have, by perf 6.1.
#[test]
fn what_perf_script_prints_is_read() {
    let text = b"# captured on: yesterday\n\
web server     7/8     [003]  4711.012345:    1001001 cpu-clock:pppH: \n\
\tffffffff81a0b0c0 tcp_send+0x10 ([kernel.kallsyms])\n\
\t    7f0000001234 send+0x1f (/lib/x y.so (deleted))\n\
\t    550000000999 pick (inlined)\n\
\t    550000000999 main(int, char const*)+0x3 (/opt/app)\n\
\x20 main.c:12\n\
\t    550000000111 [unknown] (/opt/app)\n\
\n\
sh 9 1.5:          1 page-faults:  deadbeef main+0x1 (/bin/sh)\n\
what is this\n\
:12 12 [000] 2.000000001:          3 page-faults: \n\
\t    0 [stack deeper than its copy] ([cut])\n\n";
    let profile = foreign::read(text).unwrap();
    let kept = Kept { threads: true, lines: true, inlined: true, files: true };
    let found = told(&profile, kept);
    let server = "web server/7/8 in /opt/app File User;main(int, char const*) main.c:12;+pick :0 in /opt/app File User;send :0 in /lib/x \
                  y.so (deleted) File User;tcp_send :0 in [kernel.kallsyms] Kernel Kernel";
    assert_eq!(found.get(server), Some(&(1_001_001, 1)), "{found:?}");
    assert_eq!(found.get("/12/12;[stack deeper than its copy]"), Some(&(3, 1)), "{found:?}");
    assert_eq!(profile.samples.len(), 3);
    let first = profile.samples.get(2).unwrap();
    assert_eq!((first.time_ns, first.cpu), (4_711_012_345_000, 3));
    assert_eq!(profile.meta.damaged_records, 1);
    assert!(profile.meta.warnings.iter().any(|text| text.contains("line 11")), "{:?}", profile.meta.warnings);
}

#[test]
fn gzip_is_unpacked_within_bounds() {
    let pack = |bytes: &[u8]| {
        let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    assert_eq!(total(&foreign::read(&pack(b"a;b 3\n")).unwrap()), 3);
    let bomb = pack(&vec![b' '; 80 << 20]);
    assert!(bomb.len() < 300_000);
    let error = foreign::read(&bomb).unwrap_err();
    assert!(matches!(error, ForeignError::TooLarge { .. }), "{error}");
    let error = foreign::read(&pack(b"a;b 3\n")[..20]).unwrap_err();
    assert!(matches!(error, ForeignError::Packed { .. }), "{error}");
}

/// A sample in a function without a symbol at 0x1010 that begins at 0x1000, called by one of which nobody knows where it begins.
fn unnamed() -> Profile {
    let mut profile = Profile::default();
    let [path, empty, name, unit] =
        ["/lib/libx.so.1", "", "cpu-clock", "ns"].map(|text| profile.strings.add(text));
    let build_id = BuildId::new(&[1, 2, 3, 4]);
    let dso = profile.dsos.add(Dso { path, build_id, kind: DsoKind::File, addresses: AddressSpace::Svma });
    let [inner, outer] = [0x1010, 0x2020].map(|address| {
        let address = Address(address);
        let kind = FrameKind::User;
        profile.frames.add(Frame { kind, dso: Some(dso), address, is_return: false, found: Found::Sampled })
    });
    let start = Some(Address(0x1000));
    let function = Function {
        name: empty,
        linkage_name: empty,
        dso: Some(dso),
        start,
        source_file: empty,
        start_line: 0,
    };
    let function = profile.symbols.functions.add(function);
    profile.symbols.set(inner, &[Line { function, file: empty, line: 0, inlined: false }]);
    let process = profile.processes.push(Process { pid: 7, ppid: 1, exe: path });
    let thread = profile.threads.push(Thread { process, tid: 7, comm: name });
    let event = profile.events.push(Event { name, unit });
    let stack = profile.add_stack(&[inner, outer]);
    profile.samples.push(Sample { time_ns: 0, thread, cpu: 0, event, stack, syscall: None, weight: 1 });
    profile.meta.recorder = "plumb 0".into();
    profile
}

#[test]
fn a_function_without_a_symbol_has_one_name_and_comes_back_without() {
    let profile = unnamed();
    type Write = fn(&Profile, &mut Vec<u8>);
    let formats: [(&str, Write); 6] = [
        ("pprof", |profile, out| pprof::write(profile, out).unwrap()),
        ("firefox", |profile, out| firefox::write(profile, out).unwrap()),
        ("speedscope", |profile, out| speedscope::write(profile, out).unwrap()),
        ("csv", |profile, out| plumb_formats::csv::write(profile, out).unwrap()),
        ("callgrind", |profile, out| plumb_formats::callgrind::write(profile, out).unwrap()),
        ("folded", |profile, out| folded::write(profile, &folded::FoldedOptions::default(), out).unwrap()),
    ];
    for (format, write) in formats {
        let mut bytes = Vec::new();
        write(&profile, &mut bytes);
        if matches!(format, "pprof" | "firefox") {
            let back = foreign::read(&bytes).unwrap();
            let frames: Vec<_> = back.frames.iter().map(|(id, frame)| (frame.address.0, id)).collect();
            let start = |at: u64| {
                let (_, id) = frames.iter().find(|(address, _)| *address == at).unwrap();
                (back.symbols.of(*id).len(), back.symbols.nameless_start(*id))
            };
            assert_eq!(start(0x1010), (0, Some(Address(0x1000))), "{format}");
            assert_eq!(start(0x2020).0, 0, "{format}: no name either");
            continue;
        }
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains("libx.so.1+0x1000") && text.contains("libx.so.1+0x2020"), "{format}: {text}");
    }
}
