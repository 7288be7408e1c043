//! Recordings without plumb: pyarrow reads the tables, and finds the data written.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::support;
use std::process::{Command, Stdio};

use plumb_fixtures::{Requirement, skip};
use plumb_profile::{Id, Profile};
use serde_json::{Value, json};

/// Prints the archive as one JSON object: a table's columns under its name.
const SCRIPT: &str = r#"
import io, json, sys, zipfile
try:
    import pyarrow.parquet
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(77)
archive = zipfile.ZipFile(sys.argv[1])
assert archive.testzip() is None
tables = {"meta": json.loads(archive.read("meta.json"))}
for name in archive.namelist():
    if name.endswith(".parquet"):
        table = pyarrow.parquet.read_table(io.BytesIO(archive.read(name)))
        tables[name[:-8]] = table.to_pydict()
json.dump(tables, sys.stdout, default=lambda value: value.hex())
"#;

/// Reads the tables with pyarrow. `None`, after printing the reason, if Python or pyarrow is missing.
fn tables(profile: &Profile) -> Option<Value> {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("tables.plumb");
    plumb_formats::native::write(profile, std::fs::File::create(&path).unwrap()).unwrap();
    let python = std::env::var_os("PLUMB_TEST_PYTHON").unwrap_or_else(|| "python3".into());
    let output = Command::new(&python).arg("-c").arg(SCRIPT).arg(&path).stdin(Stdio::null()).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            skip(
                Requirement::Python,
                format_args!("{} can't be run ({error}); set PLUMB_TEST_PYTHON", python.display()),
            );
            return None;
        }
    };
    let message = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        skip(Requirement::Python, format_args!("{message}; set PLUMB_TEST_PYTHON to a python with pyarrow"));
        return None;
    }
    assert!(output.status.success(), "{message}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn pyarrow_finds_what_was_written() {
    let profile = support::profile(5, 300);
    let Some(tables) = tables(&profile) else { return };
    assert_eq!(tables["meta"]["format"], "plumb recording");
    assert_eq!(tables["meta"]["host"], profile.meta.host);
    assert_eq!(tables["strings"]["text"], json!(profile.strings.iter().collect::<Vec<_>>()));
    let samples: Vec<_> = profile.samples.iter().collect();
    let column =
        |value: fn(&plumb_profile::Sample) -> Value| Value::Array(samples.iter().map(value).collect());
    assert_eq!(tables["samples"]["time_ns"], column(|sample| sample.time_ns.into()));
    assert_eq!(tables["samples"]["thread"], column(|sample| sample.thread.index().into()));
    assert_eq!(tables["samples"]["cpu"], column(|sample| sample.cpu.into()));
    assert_eq!(tables["samples"]["event"], column(|sample| sample.event.index().into()));
    assert_eq!(tables["samples"]["stack"], column(|sample| sample.stack.map(Id::index).into()));
    assert_eq!(tables["samples"]["weight"], column(|sample| sample.weight.into()));
    let frames = profile.frames.rows();
    let cuts: Vec<_> = frames.iter().map(|frame| frame.cut().map(|cut| cut.name())).collect();
    assert_eq!(tables["frames"]["cut"], json!(cuts));
    let addresses: Vec<_> = frames.iter().map(|frame| frame.address.0).collect();
    assert_eq!(tables["frames"]["address"], json!(addresses));
    let returns: Vec<_> = frames.iter().map(|frame| frame.is_return).collect();
    assert_eq!(tables["frames"]["is_return"], json!(returns));
    let callers: Vec<_> = profile.stacks.iter().map(|(_, node)| node.caller.map(Id::index)).collect();
    assert_eq!(tables["stacks"]["caller"], json!(callers));
    let lives = profile.lives.rows();
    let column = |value: fn(&plumb_profile::Life) -> Value| Value::Array(lives.iter().map(value).collect());
    assert_eq!(tables["lives"]["pid"], column(|life| life.pid.into()));
    assert_eq!(tables["lives"]["parent"], column(|life| life.parent.map(Id::index).into()));
    assert_eq!(tables["lives"]["end"], column(|life| life.end.name().into()));
    assert_eq!(tables["lives"]["start_us"], column(|life| life.start_ns.map(|ns| ns / 1000).into()));
    assert_eq!(tables["lives"]["peak_rss_bytes"], column(|life| life.peak_rss_bytes.into()));
    let dsos = profile.dsos.rows();
    let ids: Vec<_> = dsos.iter().map(|dso| dso.build_id.as_ref().map(|id| id.to_string())).collect();
    assert_eq!(tables["dsos"]["build_id"], json!(ids));
}
