//! `plumb doctor`: what this user may record here and what would allow more, or what a recording lacks and why.

mod machine;
mod recording;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use serde::Serialize;

use crate::columns::{self, left};
use crate::terminal::{Output, finish, printable};

/// Arguments of `plumb doctor`.
#[derive(clap::Args)]
pub struct Args {
    /// A recording, or a profile of another tool: say what it lacks; without one, what may be recorded here
    file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How well something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// Nothing to be wished for.
    #[serde(rename = "ok")]
    Good,
    /// It works with less than there could be.
    Limited,
    /// It doesn't work.
    Missing,
}

/// One line of the diagnosis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    state: State,
    /// What was looked at.
    what: String,
    /// What was found.
    says: String,
    /// What to do, most often what to type; empty if there is nothing.
    remedy: String,
}

impl Finding {
    fn new(state: State, what: impl Into<String>, says: impl Into<String>) -> Self {
        Self { state, what: what.into(), says: says.into(), remedy: String::new() }
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}

/// What is printed.
#[derive(Serialize)]
struct Diagnosis {
    /// What was looked at, in a line.
    subject: String,
    findings: Vec<Finding>,
}

/// Runs `plumb doctor`.
pub fn run(args: Args) -> Result<ExitCode> {
    let diagnosis = match &args.file {
        Some(file) => {
            let profile = crate::load::load(file)?;
            Diagnosis { subject: file.display().to_string(), findings: recording::findings(&profile) }
        }
        None => machine::diagnosis(),
    };
    let mut out = Output::stdout();
    finish(print(&diagnosis, args.json, &mut out))
}

fn print(diagnosis: &Diagnosis, json: bool, out: &mut Output<'_>) -> Result<()> {
    if json {
        plumb_formats::json::write_pretty(&mut *out, diagnosis)?;
        writeln!(out)?;
        return Ok(out.flush()?);
    }
    writeln!(out, "{}", printable(&diagnosis.subject))?;
    let width =
        diagnosis.findings.iter().map(|finding| columns::width(&finding.what)).max().unwrap_or(0).min(40);
    for finding in &diagnosis.findings {
        let state = match finding.state {
            State::Good => out.styled(Style::new().fg_color(Some(AnsiColor::Green.into())), "ok     "),
            State::Limited => out.styled(Style::new().fg_color(Some(AnsiColor::Yellow.into())), "limited"),
            State::Missing => out.styled(Style::new().fg_color(Some(AnsiColor::Red.into())), "missing"),
        };
        writeln!(out, "  {state}  {}  {}", left(&printable(&finding.what), width), printable(&finding.says))?;
        if !finding.remedy.is_empty() {
            writeln!(out, "           {}  -> {}", left("", width), printable(&finding.remedy))?;
        }
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_is_printed_with_its_remedy() {
        let finding = Finding::new(State::Limited, "kernel", "hidden").remedy("sudo x");
        let diagnosis = Diagnosis { subject: "here".into(), findings: vec![finding] };
        let mut text = Vec::new();
        print(&diagnosis, false, &mut Output::plain(&mut text)).expect("memory takes everything");
        let text = String::from_utf8(text).expect("it is text");
        assert_eq!(text, "here\n  limited  kernel  hidden\n                   -> sudo x\n");
        let mut json = Vec::new();
        print(&diagnosis, true, &mut Output::plain(&mut json)).expect("memory takes everything");
        let json: serde_json::Value = serde_json::from_slice(&json).expect("it is JSON");
        assert_eq!(json["findings"][0]["state"], "limited");
        assert_eq!(json["findings"][0]["remedy"], "sudo x");
    }
}
