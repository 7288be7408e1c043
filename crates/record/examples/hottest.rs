//! Records a command, and prints the functions in which most of its time was spent.
//!
//! `cargo run -p plumb-record --example hottest -- gzip -9 -k FILE`

use std::error::Error;
use std::ffi::OsString;

use plumb_analyze::{Filter, Key, Precision, Report, ReportOptions, View};
use plumb_record::{Notices, RecordRequest, record};
use plumb_target::{Launch, Target};

struct Stderr;

impl Notices for Stderr {
    fn message(&mut self, text: &str) {
        eprintln!("{text}");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1);
    let program = words.next().ok_or("name a command")?;
    let arguments: Vec<OsString> = words.collect();
    let launch = Launch { program, arguments, environment: Vec::new() };
    let profile = record(&RecordRequest::new(Target::Command(launch)), &mut Stderr)?;
    let filter = Filter::default();
    let view = View::new(&profile, &filter);
    let by_function = ReportOptions { keys: vec![Key::Symbol], children: false, ..ReportOptions::default() };
    let precision = Precision::of(&view);
    for row in Report::new(&view, &filter, &by_function).rows.iter().take(10) {
        println!(
            "{:>7}  {}",
            precision.percent(row.own.percent_of(view.whole())),
            view.frame(row.key.frame).name
        );
    }
    Ok(())
}
