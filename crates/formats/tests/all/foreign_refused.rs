//! Files that resemble a format but are not in it: rejected with a description, or read as what they are.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::Write;

use plumb_formats::foreign::{self, ForeignError};
use plumb_profile::Profile;

fn stacks(profile: &Profile) -> Vec<String> {
    let mut stacks: Vec<String> = profile.samples.iter().map(|sample| stack(profile, sample.stack)).collect();
    stacks.dedup();
    stacks
}

fn stack(profile: &Profile, stack: Option<plumb_profile::StackId>) -> String {
    let names = profile.frames_of(stack).map(|frame| {
        let line = profile.symbols.of(frame).first();
        line.map_or("?", |line| profile.strings.get(profile.symbols.functions[line.function].name))
    });
    let mut names: Vec<&str> = names.collect();
    names.reverse();
    names.join(";")
}

/// The weight of each event.
fn weights(profile: &Profile) -> Vec<(&str, u64)> {
    let of = |event| profile.samples.iter().filter(move |one| one.event == event).map(|one| one.weight).sum();
    profile.events.iter().map(|(id, event)| (profile.strings.get(event.name), of(id))).collect()
}

fn refused(bytes: &[u8]) -> String {
    match foreign::read(bytes) {
        Err(error @ ForeignError::Unknown { .. }) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(profile) => panic!("{:?}", stacks(&profile)),
    }
}

#[test]
fn folded_stacks_may_begin_with_a_bracket() {
    for (text, first) in [
        ("[main tid=1];java/lang/Thread.run;Foo.bar 12\n[GC Thread#0 tid=7];Foo.baz 3\n", "[main tid=1]"),
        ("{main};foo;{closure:x.php:1-2} 4\n", "{main}"),
        ("\n[unknown];[libc.so.6];main 5\n", "[unknown]"),
        ("[1];[2] 5\n", "[1]"),
        ("{\"quoted\"};a 5\n", "{\"quoted\"}"),
        ("\u{feff}{main};foo 4\n", "{main}"),
        ("\u{feff}main;foo 4\n", "main"),
    ] {
        let profile = foreign::read(text.as_bytes()).unwrap();
        assert!(stacks(&profile)[0].starts_with(&format!("{first};")), "{text}: {:?}", stacks(&profile));
    }
    // A list of numbers, one per line; an object whose first line ends in a number.
    for json in ["[ 1\n, 2]", "{ \"version\": 12\n, \"x\": 1}", "{\"a\":\n 1\n}", "\u{feff}{\"a\": 1}"] {
        let error = foreign::read(json.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("JSON"), "{json}: {error}");
    }
}

#[test]
fn tables_of_numbers_are_no_stacks() {
    for text in [
        "cpu  123 4 5 6\ncpu0 61 2 2 3\nctxt 99\n",
        "nr_free_pages 123\nnr_dirty 0\nnr_writeback 7\n",
        "usage_usec 5\nnr_throttled 0\n",
        "Threads: 5\n",
        "   1       0 loop0 1 2 3\n",
    ] {
        assert!(refused(text.as_bytes()).contains("not folded stacks"), "{text}");
    }
    // Functions without callers, as in a flat profile.
    assert_eq!(stacks(&foreign::read(b"main 5\nwork 7\n").unwrap()), ["main", "work"]);
    let utf16: Vec<u8> = "\u{feff}a;b 1\n".encode_utf16().flat_map(|unit| unit.to_le_bytes()).collect();
    assert!(refused(&utf16).contains("UTF-16"));
}

#[test]
fn logs_are_no_stacks() {
    for text in [
        "0.10 0.20 0.30 1/234 10183\n",
        "12345.67 23456.78\n",
        " 14:00:01 up  4:48,  0 user,  load average: 19.16, 10.34, 8\n",
        "Nov 28 14:00:01 host sshd[123]: Accepted publickey for root from 10.0.0.1 port 22\nNov 28 14:00:02 host cron[9]: a;b job 5\n",
        "2026-11-28T14:00:01.123Z worker took 5\n2026-11-28T14:00:02.123Z worker took 7\n",
        "[   12.345678] usb 1-1: new device as number 5\n",
        "10.0.0.1 - - \"GET / HTTP/1.1\" 200x 612\n",
        "the server is listening on port 80\nthe server has answered request number 7\n",
    ] {
        assert!(refused(text.as_bytes()).contains("not folded stacks"), "{text}");
    }
    for text in [
        "operator new[] (unsigned long) 12\nstd::map<int, long long, std::less<int> >::find(int const&) const 3\n",
        "java.lang.Thread.run 3\n",
        "unsigned long const* find<int>(int, int, int) 3\n<T as core::ops::FnOnce>::call_once 4\n",
        "1234;main 3\n1235;main 4\n",
        "swapper 3\n12 worker;main 4\n7z 5\n0x401234 6\n",
        "the long name of some thread;main;work 5\n",
        "<module> (x.py:12) 5\n[] 3\n{} 2\n",
    ] {
        assert!(foreign::read(text.as_bytes()).is_ok(), "{text}: {:?}", foreign::read(text.as_bytes()).err());
    }
}

#[test]
fn perf_script_without_call_graphs_has_a_sample_each_line() {
    let text = "               p   581   173.010459:    1003009 cpu-clock:pppH:      5623e21ed157 f_one+0x17 (/tmp/p)\n\
                \x20           cafe   12/13 [001] 173.011459:    1003009 cpu-clock:pppH:      5623e21ed187 f_two+0x7 (/tmp/p)\n\
                \x20 p.c:3\n\
                a name of sixtee   581   173.012459:    1003009 cpu-clock:pppH:  ffffffff81000000 [unknown] ([kernel.kallsyms])\n";
    let profile = foreign::read(text.as_bytes()).unwrap();
    assert_eq!(stacks(&profile), ["f_one", "f_two", "?"]);
    assert_eq!((profile.meta.damaged_records, weights(&profile)[0].1), (0, 3 * 1_003_009));
    let comms = profile.threads.rows().iter().map(|thread| profile.strings.get(thread.comm));
    assert_eq!(comms.collect::<Vec<_>>(), ["p", "cafe", "a name of sixtee"]);
}

#[test]
fn perf_script_is_recognized_below_a_long_header() {
    let program =
        "# bpf_prog_info 123: bpf_prog_6deef7357e7b4530_sd_fw_egress addr 0xffffffffc0012345 size 64\n";
    let header = format!("# ========\n# hostname : h\n{}\n# ========\n#\n\n", program.repeat(2000));
    let text = header + "sh 9 1.5:          1 page-faults:  deadbeef main+0x1 (/bin/sh)\n";
    assert_eq!(stacks(&foreign::read(text.as_bytes()).unwrap()), ["main"]);
    assert!(refused("# x\n".repeat(5_000_000).as_bytes()).contains("neither folded stacks"));
}

/// As perf 6.1 prints it with `--show-task-events --show-mmap-events --show-namespace-events --show-lost-events`.
#[test]
fn records_of_perf_script_that_are_no_samples_are_left_out() {
    let text = "         swapper     0 [000]     0.000000: PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x1000) @ 0]: x [kernel.kallsyms]_text\n\
                \x20           perf   581 [001]   173.000001: PERF_RECORD_COMM exec: my prog:581/581\n\
                \x20        my prog   581 [001]   173.000002: PERF_RECORD_NAMESPACES 581/581 - nr_namespaces: 7\n\
                \t\t[0/net: 3/0xf0000098, 1/uts: 3/0xeffffffe, \n\t\t 4/user: 3/0xeffffffd, 6/cgroup: 3/0xeffffffb]\n\
                \x20        my prog   581 [001]   173.000003: PERF_RECORD_FORK(582:582):(581:581)\n\
                my prog   581 [001]   173.010459:    1003009 cpu-clock:pppH: \n\t    5623e21ed157 f_one+0x17 (/tmp/p)\n\n\
                \x20        my prog   581 [001]   173.010460: PERF_RECORD_LOST lost 12\n\
                \x20        my prog   582 [001]   173.010461: PERF_RECORD_EXIT(582:582):(581:581)\n\
                my prog   581 [001]   173.010462:    1003009 cpu-clock:pppH: \n\t    5623e21ed157 f_two+0x17 (/tmp/p)\n\
                \x20        my prog   581 [001]   173.010463: PERF_RECORD_EXIT(581:581):(8:8)\n";
    for text in [text, &text[text.find("            perf").unwrap()..]] {
        let profile = foreign::read(text.as_bytes()).unwrap();
        assert_eq!(stacks(&profile), ["f_one", "f_two"]);
        assert_eq!(
            (weights(&profile), profile.meta.damaged_records),
            (vec![("cpu-clock:pppH", 2 * 1_003_009)], 0)
        );
    }
}

/// Written by Go 1.26 with a rate of 1024.
#[test]
fn a_go_heap_text_is_read_as_go_reads_it() {
    let text = "heap profile: 2: 528384 [3: 532480] @ heap/2048\n\
                1: 524288 [1: 524288] @ 0x47c5cc 0x4d9ebe\n\
                #\t0x4d9ebd\tmain.(*T).alloc+0x7d\t/tmp/fm/main.go:5\n\
                #\t0x4da144\tmain.main+0x44\t\t/tmp/fm/main.go:7\n\n\
                0: 0 [1: 64] @ 0x47c5ec\n#\t0x47c5ec\truntime.x+0x1\t/x.go:1\n\n\
                # runtime.MemStats\n# Alloc = 43225208\n";
    let profile = foreign::read(text.as_bytes()).unwrap();
    assert_eq!(stacks(&profile)[0], "main.main;main.(*T).alloc");
    // 64 bytes sampled once at a rate of 1024 represent 1 / (1 - e^(-64/1024)) times as many: 16.5.
    assert_eq!(
        weights(&profile),
        [
            ("inuse_space", 524_288),
            ("inuse_objects", 1),
            ("alloc_space", 524_288 + 1056),
            ("alloc_objects", 17)
        ]
    );
}

#[test]
fn other_texts_of_go_are_read() {
    let goroutines = "goroutine profile: total 4\n3 @ 0x47de8e 0x4158ee\n# labels: {\"a\":\"b\"}\n#\t0x4da3d8\tmain.main.func1+0x18\t/m.go:10\n\n\
                      1 @ 0x442c51\n#\t0x442c50\tmain.main+0x1\t/m.go:3\n";
    let profile = foreign::read(goroutines.as_bytes()).unwrap();
    assert_eq!(
        (profile.samples.len(), stacks(&profile)),
        (4, vec!["main.main.func1".into(), "main.main".into()])
    );
    let traces = "goroutine 1 [running]:\nmain.(*T).dump({0x509f1e, 0x9}, 0x7f3e6ed21108?)\n\t/tmp/main.go:6 +0x145\nmain.main()\n\
                  \t/tmp/main.go:14 +0x208\n\ngoroutine 17 [chan receive, 3 minutes]:\nmain.main.func1(...)\n\t/tmp/main.go:10 +0x19\n\
                  created by main.main in goroutine 1\n\t/tmp/main.go:10 +0x79\n";
    let profile = foreign::read(traces.as_bytes()).unwrap();
    assert_eq!(stacks(&profile), ["main.main;main.(*T).dump", "main.main.func1"]);
    let mutex = "--- mutex:\ncycles/second=2000000000\nsampling period=5\n4000 2 @ 0x4da386\n#\t0x4da385\tsync.(*Mutex).Unlock+0x45\t/m.go:65\n";
    let profile = foreign::read(mutex.as_bytes()).unwrap();
    assert_eq!(weights(&profile), [("delay", 10_000), ("contentions", 10)]);
    let threads = foreign::read(b"threadcreate profile: total 4\n4 @ 0x0 0x0\n#\t0x0\n\n").unwrap();
    assert_eq!(weights(&threads), [("threads", 4)]);
    for (text, line) in [
        ("heap profile: 1: 2 [3: 4] @ heap/8\nrubbish\n", 2),
        ("heap profile: 1: 2 [3: 4] @ heap/8\n1: 2 @ 0x1\n", 2),
        ("--- contention:\n4000 2 @ 0x1\n", 2),
        ("goroutine profile: total 1\n1 @ main\n", 2),
        ("goroutine profile: total 1\n18446744073709551616 @ 0x1\n", 2),
    ] {
        let error = foreign::read(text.as_bytes()).unwrap_err();
        assert!(matches!(error, ForeignError::Line { line: at, .. } if at == line), "{text}: {error}");
    }
}

#[test]
fn zstd_and_xz_are_unpacked_within_bounds() {
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    let xz = |bytes: &[u8]| {
        let mut writer =
            lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    };
    for packed in [zstd(b"a;b 3\n"), xz(b"a;b 3\n")] {
        assert_eq!(stacks(&foreign::read(&packed).unwrap()), ["a;b"]);
        let error = foreign::read(&packed[..packed.len() - 5]).unwrap_err();
        assert!(matches!(error, ForeignError::Packed { .. }), "{error}");
    }
    let error = foreign::read(&zstd(&vec![b' '; 80 << 20])).unwrap_err();
    assert!(matches!(error, ForeignError::TooLarge { .. }), "{error}");
}
