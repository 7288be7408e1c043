//! Weights that cannot have been measured are rejected, with the position: never rounded to zero, never wrapped around.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use plumb_formats::foreign;

fn refused(text: &str) -> String {
    foreign::read(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn folded_counts() {
    let error = refused("main;a 1\nmain;b -5\n");
    assert!(error.starts_with("line 2:") && error.contains("below zero"), "{error}");
    let error = refused("main;a 99999999999999999999999\n");
    assert!(error.starts_with("line 1:") && error.contains("2^64"), "{error}");
    let error = refused("main;a 18446744073709551615\nmain;b 1\n");
    assert!(error.starts_with("line 2:") && error.contains("sum"), "{error}");
    let most = foreign::read(b"main;a 18446744073709551615\n").unwrap();
    assert_eq!(most.samples.iter().map(|sample| sample.weight).sum::<u64>(), u64::MAX);
}

#[test]
fn speedscope_weights() {
    let file = |weights: &str| {
        let samples = vec!["[0]"; weights.split(',').count()].join(",");
        format!(
            r#"{{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{{"frames":[{{"name":"main"}}]}},
            "profiles":[{{"type":"sampled","name":"a","unit":"seconds","samples":[{samples}],"weights":[{weights}]}}]}}"#
        )
    };
    let error = refused(&file("1,-1"));
    assert!(error.starts_with("row 0 of profiles: number 1") && error.contains("below zero"), "{error}");
    let error = refused(&file("1,1,1e300"));
    assert!(error.starts_with("row 0 of profiles: number 2") && error.contains("2^64"), "{error}");
    let error = refused(&file("1e10,1e10"));
    assert!(error.starts_with("row 0 of profiles: number 1") && error.contains("sum"), "{error}");
    let events = r#"{"$schema":"speedscope","shared":{"frames":[{"name":"main"}]},"profiles":[{"type":"evented","name":"a",
        "unit":"none","events":[{"type":"O","frame":0,"at":0},{"type":"C","frame":0,"at":1e30}]}]}"#;
    assert!(refused(events).contains("number 1"), "{}", refused(events));
}

#[test]
fn firefox_weights() {
    let file = |weight: &str| {
        format!(
            r#"{{"meta":{{"preprocessedProfileVersion":55}},"threads":[{{"name":"a","pid":1,"tid":1,
            "samples":{{"stack":[0,0],"time":[0,1],"weight":[1,{weight}],"weightType":"samples"}},
            "stackTable":{{"frame":[0],"prefix":[null]}},"frameTable":{{"func":[0],"address":[-1]}},
            "funcTable":{{"name":[0]}},"stringArray":["main"]}}]}}"#
        )
    };
    assert_eq!(foreign::read(file("2").as_bytes()).unwrap().samples.len(), 2);
    for (weight, why) in [("-2", "below zero"), ("1e40", "2^64"), ("18446744073709549568", "sum")] {
        let error =
            foreign::read(file(weight).replace("[1,", "[9000000,").as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("row 0 of threads: sample 1") && error.contains(why), "{weight}: {error}");
    }
}

/// Encodes a message field: a varint or bytes.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, value.len() as u8][..], value].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

#[test]
fn pprof_values() {
    let file = |values: &[i64]| {
        let mut bytes = field(1, &[0x08, 1, 0x10, 2]);
        for &value in values {
            bytes.extend(field(2, &field(2, &varint(value as u64))));
        }
        ["", "wall", "seconds"].iter().for_each(|text| bytes.extend(field(6, text.as_bytes())));
        bytes
    };
    assert_eq!(foreign::read(&file(&[1, 2])).unwrap().samples.len(), 2);
    // As `go tool pprof -proto -base` writes it.
    let difference = foreign::read(&file(&[3, -2])).unwrap();
    let weights = difference
        .samples
        .iter()
        .map(|one| (difference.strings.get(difference.events[one.event].name), one.weight));
    let weights: Vec<(&str, u64)> = weights.collect();
    assert_eq!(weights, [("wall", 3_000_000_000), ("wall-decrease", 2_000_000_000)]);
    assert!(difference.meta.warnings.iter().any(|text| text.contains("difference")));
    for (values, row, why) in [
        (&[i64::MAX][..], 0, "2^64"),
        (&[i64::MIN], 0, "2^64"),
        (&[10_000_000_000, 10_000_000_000], 1, "2^64"),
    ] {
        let error = foreign::read(&file(values)).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("row {row} of sample:")) && error.contains(why),
            "{values:?}: {error}"
        );
    }
}

/// A text is read as far as it is valid; the rest is counted, with its first line.
#[test]
fn perf_script_periods() {
    let line =
        |period: &str| format!("app 1/1 [000] 1.000000: {period} cycles: \n\t 1000 main+0x0 (/app)\n\n");
    for (bad, lines) in [("-5", 2), ("99999999999999999999999", 2), ("18446744073709551615", 2)] {
        let text = line("7") + &line(bad) + &line("8");
        let profile = foreign::read(text.as_bytes()).unwrap();
        let weights: Vec<u64> = profile.samples.iter().map(|sample| sample.weight).collect();
        assert_eq!((weights, profile.meta.damaged_records), (vec![7, 8], lines), "{bad}");
        let warnings = profile.meta.warnings.join("; ");
        assert!(warnings.contains("the first of them line 4"), "{warnings}");
    }
}
