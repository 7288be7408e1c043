//! OpenTelemetry profiles, read with the types that OpenTelemetry generates from its own description of the format.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::profiles::v1development::{
    Location, ProfilesData, ProfilesDictionary, Sample,
};
use plumb_fixtures::Made;
use plumb_formats::{foreign, otlp};
use prost::Message;

fn written(made: &Made) -> ProfilesData {
    let mut bytes = Vec::new();
    otlp::write(&made.profile, &mut bytes).unwrap();
    let data = ProfilesData::decode(&bytes[..]).unwrap();
    // All fields are known there.
    assert_eq!(data.encode_to_vec(), bytes);
    // The file is not mistaken for a damaged pprof.
    let refused = foreign::read(&bytes).unwrap_err().to_string();
    assert!(refused.contains("OpenTelemetry"), "{refused}");
    // Requests to a collector have the same form.
    let request = ExportProfilesServiceRequest::decode(&bytes[..]).unwrap();
    assert_eq!(request.resource_profiles, data.resource_profiles);
    data
}

fn text(dictionary: &ProfilesDictionary, index: i32) -> &str {
    &dictionary.string_table[index as usize]
}

/// The attributes of a row, as text.
fn attributes(dictionary: &ProfilesDictionary, indices: &[i32]) -> BTreeMap<String, String> {
    let attribute = |&index: &i32| {
        let one = &dictionary.attribute_table[index as usize];
        let value = match one.value.as_ref().and_then(|value| value.value.clone()) {
            Some(Value::StringValue(text)) => text,
            Some(Value::IntValue(number)) => number.to_string(),
            other => panic!("{other:?}"),
        };
        (text(dictionary, one.key_strindex).to_owned(), value)
    };
    indices.iter().map(attribute).collect()
}

/// `inlined<function@file` of a location, the innermost first.
fn place(dictionary: &ProfilesDictionary, location: &Location) -> String {
    let line = |line: &opentelemetry_proto::tonic::profiles::v1development::Line| {
        let function = &dictionary.function_table[line.function_index as usize];
        format!("{}:{}", text(dictionary, function.name_strindex), line.line)
    };
    let lines: Vec<String> = location.lines.iter().map(line).collect();
    let file = dictionary.mapping_table[location.mapping_index as usize].filename_strindex;
    format!("{}@{}", lines.join("<"), text(dictionary, file))
}

fn stack(dictionary: &ProfilesDictionary, sample: &Sample) -> String {
    let stack = &dictionary.stack_table[sample.stack_index as usize];
    let places = stack.location_indices.iter();
    let places: Vec<String> =
        places.map(|&index| place(dictionary, &dictionary.location_table[index as usize])).collect();
    places.join(" ")
}

fn example() -> Made {
    let mut made = Made::new();
    made.sample("web server/7/8", "main:3+pick:9@app;send@libc.so;tcp_send@k", 11)
        .sample("web server/7/8", "main:3+pick:9@app;send@libc.so;tcp_send@k", 12)
        .sample("sh/9/9", "!;0x123@libc.so", 3);
    made.event("page-faults", "count").sample("sh/9/9", "main@app", 5);
    made
}

#[test]
fn stacks_values_and_attributes_are_there() {
    let mut made = example();
    made.profile.meta.start_unix_ns = 1_700_000_000_000_000_000;
    let data = written(&made);
    let dictionary = data.dictionary.unwrap();
    let profiles = &data.resource_profiles[0].scope_profiles[0].profiles;
    let kinds: Vec<(&str, &str)> = profiles
        .iter()
        .map(|profile| {
            let kind = profile.sample_type.as_ref().unwrap();
            (text(&dictionary, kind.type_strindex), text(&dictionary, kind.unit_strindex))
        })
        .collect();
    assert_eq!(kinds, [("cpu", "nanoseconds"), ("page_faults", "count")]);
    let samples = &profiles[0].samples;
    assert_eq!(samples.len(), 2, "equal stacks of a thread are one");
    assert_eq!(
        stack(&dictionary, &samples[0]),
        "tcp_send:0@[kernel.kallsyms] send:0@/opt/libc.so pick:9<main:3@/opt/app"
    );
    assert_eq!((&samples[0].values[..], samples[0].timestamps_unix_nano.len()), (&[11, 12][..], 2));
    assert_eq!(samples[0].timestamps_unix_nano[1], 1_700_000_000_001_000_000);
    assert_eq!(
        stack(&dictionary, &samples[1]),
        "libc.so+0x123:0@/opt/libc.so [stack deeper than its copy]:0@"
    );
    let whose = attributes(&dictionary, &samples[0].attribute_indices);
    let expected = [("process.pid", "7"), ("thread.id", "8"), ("thread.name", "web server")];
    assert_eq!(whose, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    let leaf = dictionary.stack_table[samples[0].stack_index as usize].location_indices[0];
    let kind = attributes(&dictionary, &dictionary.location_table[leaf as usize].attribute_indices);
    assert_eq!(kind["profile.frame.type"], "kernel");
    assert_eq!(profiles[1].samples[0].values, [5]);
}

/// Requirements of the format's description for dictionaries.
#[test]
fn tables_begin_with_an_empty_row_and_have_none_twice() {
    let dictionary = written(&example()).dictionary.unwrap();
    assert_eq!(dictionary.string_table[0], "");
    assert_eq!(dictionary.mapping_table[0], Default::default());
    assert_eq!(dictionary.location_table[0], Default::default());
    assert_eq!(dictionary.function_table[0], Default::default());
    assert_eq!(dictionary.link_table, [Default::default()]);
    assert_eq!(dictionary.attribute_table[0], Default::default());
    assert_eq!(dictionary.stack_table[0], Default::default());
    let mut strings = dictionary.string_table.clone();
    strings.sort();
    strings.dedup();
    assert_eq!(strings.len(), dictionary.string_table.len());
}

#[test]
fn without_times_values_are_summed_up() {
    let data = written(&example());
    let sample = &data.resource_profiles[0].scope_profiles[0].profiles[0].samples[0];
    assert_eq!((&sample.values[..], sample.timestamps_unix_nano.len()), (&[23][..], 0));
}
