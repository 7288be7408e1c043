//! Traces, V8 CPU profiles and callgrind files.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;

use plumb_fixtures::Made;
use plumb_formats::{callgrind, chrome, foreign};
use plumb_profile::Profile;

/// Weights by event, thread and stack.
fn told(profile: &Profile) -> BTreeMap<String, u64> {
    let mut told = BTreeMap::new();
    for sample in profile.samples.iter() {
        let thread = &profile.threads[sample.thread];
        let text = |id| profile.strings.get(id);
        let names = profile.frames_of(sample.stack).map(|frame| {
            let line = profile.symbols.of(frame).first();
            line.map_or("?".into(), |line| {
                let place = if line.line > 0 { format!(":{}", line.line) } else { String::new() };
                format!("{}{place}", text(profile.symbols.functions[line.function].name))
            })
        });
        let mut names: Vec<String> = names.collect();
        names.reverse();
        let event = text(profile.events[sample.event].name);
        let key = format!("{event} {} {}", text(thread.comm), names.join(";"));
        *told.entry(key).or_insert(0) += sample.weight;
    }
    told
}

fn map(rows: &[(&str, u64)]) -> BTreeMap<String, u64> {
    rows.iter().map(|(key, weight)| ((*key).to_owned(), *weight)).collect()
}

fn read(text: &str) -> Profile {
    foreign::read(text.as_bytes()).unwrap()
}

#[test]
fn a_cpu_profile_of_v8_is_read() {
    let profile = read(
        r#"{"nodes":[{"id":1,"callFrame":{"functionName":"(root)","scriptId":"0","url":"","lineNumber":-1,"columnNumber":-1},"hitCount":0,"children":[2,4]},
           {"id":2,"callFrame":{"functionName":"","scriptId":"1","url":"file:///app/a.js","lineNumber":0,"columnNumber":0},"hitCount":1,"children":[3]},
           {"id":3,"callFrame":{"functionName":"work","scriptId":"1","url":"file:///app/a.js","lineNumber":6,"columnNumber":3},"hitCount":2},
           {"id":4,"callFrame":{"functionName":"(idle)","scriptId":"0","url":"","lineNumber":-1,"columnNumber":-1},"hitCount":1}],
          "startTime":1000,"endTime":2000,"samples":[2,3,4,3],"timeDeltas":[100,200,50,400]}"#,
    );
    // From each sample to the next: 1100, 1300, 1350 (idle), 1750, and 2000 at the end.
    let expected = [("time  (anonymous):1", 200_000), ("time  (anonymous):1;work:7", 50_000 + 250_000)];
    assert_eq!(told(&profile), map(&expected));
    assert!(profile.meta.warnings.iter().any(|text| text.contains("idle")), "{:?}", profile.meta.warnings);
    for (text, word) in [
        (r#"{"nodes":[],"startTime":0,"endTime":1,"samples":[7],"timeDeltas":[1]}"#, "no node 7"),
        (r#"{"nodes":[],"startTime":0,"endTime":1,"samples":[7],"timeDeltas":[]}"#, "0 time deltas"),
        (
            r#"{"nodes":[{"id":1,"callFrame":{"functionName":"f"},"children":[1]}],"startTime":0,"endTime":1,"samples":[1],"timeDeltas":[1]}"#,
            "its own caller",
        ),
    ] {
        let error = foreign::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn slices_of_a_trace_are_stacks() {
    let events = r#"{"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"main"}},
        {"ph":"B","pid":1,"tid":2,"name":"load","ts":10},
        {"ph":"X","pid":1,"tid":2,"name":"parse","ts":12.5,"dur":4},
        {"ph":"B","pid":1,"tid":2,"name":"eval","ts":20},{"ph":"E","pid":1,"tid":2,"ts":25},
        {"ph":"E","pid":1,"tid":2,"ts":30},
        {"ph":"X","pid":1,"tid":3,"name":"other","ts":0,"dur":7},{"ph":"i","pid":1,"tid":3,"name":"mark","ts":1}"#;
    let expected = map(&[
        ("time  other", 7_000),
        ("time main load", 20_000 - 4_000 - 5_000),
        ("time main load;eval", 5_000),
        ("time main load;parse", 4_000),
    ]);
    for text in [format!("{{\"traceEvents\":[{events}]}}"), format!("[{events}]"), format!("[{events},\n")] {
        let profile = read(&text);
        assert_eq!(told(&profile), expected, "{text}");
        let is_cut = profile.meta.warnings.iter().any(|warning| warning.contains("cut off"));
        assert_eq!(is_cut, text.ends_with(",\n"));
        assert!(profile.meta.warnings.iter().any(|warning| warning.contains("1 events")));
    }
    // A surplus end, a surplus begin, and a slice longer than the enclosing one.
    let wrong = read(
        r#"[{"ph":"E","pid":1,"tid":1,"ts":1},{"ph":"B","pid":1,"tid":1,"name":"a","ts":2},{"ph":"X","pid":1,"tid":2,"name":"b","ts":0,"dur":5},
           {"ph":"X","pid":1,"tid":2,"name":"c","ts":3,"dur":9}]"#,
    );
    assert_eq!(told(&wrong), map(&[("time  b", 3_000), ("time  b;c", 2_000)]));
    assert!(
        wrong.meta.warnings.iter().any(|warning| warning.starts_with("3 slices")),
        "{:?}",
        wrong.meta.warnings
    );
}

#[test]
fn cpu_profiles_within_a_trace_are_read() {
    let profile = read(
        r#"{"traceEvents":[
        {"ph":"M","pid":7,"tid":9,"name":"thread_name","args":{"name":"CrRendererMain"}},
        {"ph":"P","pid":7,"tid":9,"id":"0x1","name":"Profile","ts":1000,"args":{"data":{"startTime":1000}}},
        {"ph":"P","pid":7,"tid":11,"id":"0x1","name":"ProfileChunk","ts":1100,"args":{"data":{"cpuProfile":{"nodes":[
           {"id":1,"callFrame":{"functionName":"(root)","scriptId":0}},
           {"id":2,"parent":1,"callFrame":{"functionName":"f","scriptId":3,"url":"http://a/b.js","lineNumber":4}}],"samples":[2,2]},
           "timeDeltas":[100,100]}}},
        {"ph":"P","pid":7,"tid":11,"id":"0x1","name":"ProfileChunk","ts":1200,"args":{"data":{"cpuProfile":{"nodes":[
           {"id":3,"parent":2,"callFrame":{"functionName":"g","scriptId":3,"url":"http://a/b.js","lineNumber":9}}],"samples":[3]},
           "timeDeltas":[100],"endTime":1350}}}]}"#,
    );
    let expected = [("profile CrRendererMain f:5", 200_000), ("profile CrRendererMain f:5;g:10", 50_000)];
    assert_eq!(told(&profile), map(&expected));
}

/// A profile that is exported and read again has the same times by stack, for adjacent slices.
#[test]
fn exported_traces_come_back() {
    let mut made = Made::new();
    for stack in ["main@app;work@app", "main@app;work@app;send@k", "main@app"] {
        made.sample("app/7/8", stack, 1_000_000);
    }
    let mut bytes = Vec::new();
    chrome::write(&made.profile, &mut bytes).unwrap();
    let back = foreign::read(&bytes).unwrap();
    let sum = |told: BTreeMap<String, u64>| told.values().sum::<u64>();
    assert!(!back.samples.is_empty() && sum(told(&back)) <= sum(told(&made.profile)));
    assert!(told(&back).keys().all(|key| key.starts_with("time app main")), "{:?}", told(&back));
}

/// A file that callgrind 3.19 wrote for a program with two callers of one function and a recursion, shortened.
const CALLS: &str = "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 1\ncmd:  ./q\npositions: line\nevents: Ir\nsummary: 307089\n\n\
    ob=(8) /tmp/q\nfl=(146) /tmp/q.c\nfn=(536) main\n7 4\ncfn=(538) a\ncalls=1 -3 \n* 12020\n* 18\ncfn=(538)\ncalls=9 -3 \n* 108180\n* 20\ncfn=(542) b\n\
    calls=10 -2 \n* 180110\n* 22\ncfn=(544) fib\ncalls=1 -1 \n* 6739\n* 7\n\nfn=(538)\n4 30\ncfn=(540) leaf\ncalls=10 -1 \n* 60050\n* 20\n\
    cfn=(540)\ncalls=10 -1 \n* 60050\n* 50\n\nfn=(540)\n3 300150\n\nfn=(542)\n5 20\ncfn=(540)\ncalls=10 -2 \n* 180050\n* 40\n\n\
    fn=(544)\n6 18\ncfn=(546) fib'2\ncalls=2 0\n* 6721\n\nfn=(546)\n6 6721\ncfn=(546)\ncalls=462 0\n* 60000\n";

#[test]
fn costs_of_callgrind_come_out_as_stacks() {
    let profile = read(CALLS);
    assert_eq!(
        told(&profile),
        map(&[
            ("Ir  main:7", 4 + 18 + 20 + 22 + 7),
            ("Ir  main:7;a:4", 100),
            ("Ir  main:7;a:4;leaf:3", 120_100),
            ("Ir  main:7;b:5", 60),
            ("Ir  main:7;b:5;leaf:3", 180_050),
            ("Ir  main:7;fib:6", 18),
            ("Ir  main:7;fib:6;fib'2:6", 6721),
        ])
    );
    // Full names and positions, and an instruction before each line.
    let plain = CALLS.replace("positions: line", "positions: instr line");
    let mut line = 0_i64;
    let mut lines = Vec::new();
    for text in plain.lines() {
        let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
        match first.parse::<i64>() {
            Ok(number) => line = number,
            Err(_) if first == "*" => {}
            Err(_) => {
                lines.push(text.to_owned());
                continue;
            }
        }
        lines.push(format!("0x{:x} {line} {rest}", 0x1000 + line));
    }
    assert_eq!(told(&read(&lines.join("\n"))), told(&profile));
}

#[test]
fn callgrind_that_makes_no_sense_is_refused_with_its_line() {
    for (more, word) in [
        ("fn=(9)\n", "no name"),
        ("calls=3 4\n", "no function"),
        ("fn=f\n1 2 3\n", "as there are events"),
        ("fn=f\n-9 3\n", "position"),
        ("fn=f\n1 18446744073709551615\n2 5\n", "2^64"),
        ("rubbish\n", "neither costs"),
    ] {
        let text = format!("# callgrind format\nversion: 1\nevents: Ir\n{more}");
        let error = foreign::read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(word), "{more}: {error}");
    }
}

#[test]
fn exported_callgrind_files_come_back() {
    let mut made = Made::new();
    for (stack, weight) in [("main@app;work@app", 30), ("main@app;work@app;send@k", 20), ("main@app", 7)] {
        made.sample("app/7/8", stack, weight);
    }
    let mut bytes = Vec::new();
    callgrind::write(&made.profile, &mut bytes).unwrap();
    let back = told(&foreign::read(&bytes).unwrap());
    let without_thread = |told: BTreeMap<String, u64>| -> BTreeMap<String, u64> {
        told.into_iter().map(|(key, weight)| (key.rsplit(' ').next().unwrap().to_owned(), weight)).collect()
    };
    assert_eq!(without_thread(back), without_thread(told(&made.profile)));
}
