//! `plumb doctor`: what this user may record here and how to allow more, or the gaps in a recording and their causes.

use std::io::Write;
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use plumb_doctor::{Diagnosis, FindingState};

use crate::args::SymfsArgs;
use crate::examples;
use crate::exit::Exit;
use crate::render::padding::{self, left};
use crate::terminal::{Output, finish, printable};

/// Arguments of `plumb doctor`.
#[derive(clap::Args)]
#[command(after_help = examples::DOCTOR)]
pub struct Args {
    /// Recording, or a profile of another tool, to check; without it, check this machine
    file: Option<PathBuf>,
    #[command(flatten)]
    symfs: SymfsArgs,
    /// Print JSON
    ///
    /// For a bug report; docs/doctor.md describes it.
    #[arg(long)]
    json: bool,
    /// Show the last verifier lines of each rejected BPF program
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,
}

/// Runs `plumb doctor`.
pub fn run(args: Args) -> Result<Exit> {
    let diagnosis = match &args.file {
        Some(file) => {
            let profile = crate::load::load(file, &args.symfs)?;
            Diagnosis::of_recording(file.display().to_string(), &profile)
        }
        None => Diagnosis::of_machine(),
    };
    let mut out = Output::stdout();
    finish(print(&diagnosis, &args, &mut out))
}

fn print(diagnosis: &Diagnosis, args: &Args, out: &mut Output<'_>) -> Result<()> {
    if args.json {
        plumb_formats::json::write_pretty(&mut *out, diagnosis)?;
        writeln!(out)?;
        return Ok(out.flush()?);
    }
    writeln!(out, "{}", printable(&diagnosis.subject))?;
    let width =
        diagnosis.findings.iter().map(|finding| padding::width(&finding.what)).max().unwrap_or(0).min(40);
    for finding in &diagnosis.findings {
        let state = match finding.state {
            FindingState::Good => out.styled(Style::new().fg_color(Some(AnsiColor::Green.into())), "ok     "),
            FindingState::Limited => {
                out.styled(Style::new().fg_color(Some(AnsiColor::Yellow.into())), "limited")
            }
            FindingState::Missing => {
                out.styled(Style::new().fg_color(Some(AnsiColor::Red.into())), "missing")
            }
        };
        writeln!(out, "  {state}  {}  {}", left(&printable(&finding.what), width), printable(&finding.says))?;
        if !finding.remedy.is_empty() {
            writeln!(out, "           {}  -> {}", left("", width), printable(&finding.remedy))?;
        }
    }
    for tried in diagnosis.programs.iter().filter(|tried| args.verbose && !tried.verifier.is_empty()) {
        writeln!(out, "\n{}: the kernel's verifier ended with", printable(&tried.feature))?;
        for line in &tried.verifier {
            writeln!(out, "  {}", printable(line))?;
        }
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use plumb_doctor::{Finding, ProgramTrial, SCHEMA};

    use super::*;

    fn printed(diagnosis: &Diagnosis, json: bool, verbose: bool) -> String {
        let mut text = Vec::new();
        let args = Args { file: None, symfs: SymfsArgs::default(), json, verbose };
        print(diagnosis, &args, &mut Output::plain(&mut text)).expect("memory takes everything");
        String::from_utf8(text).expect("it is text")
    }

    fn read(json: &str) -> serde_json::Value {
        serde_json::from_str(json).expect("it is JSON")
    }

    #[test]
    fn every_finding_is_printed_with_its_remedy() {
        let finding = Finding::new(FindingState::Limited, "kernel", "hidden").remedy("sudo x");
        let diagnosis = Diagnosis::new("here".into(), vec![finding]);
        assert_eq!(
            printed(&diagnosis, false, false),
            "here\n  limited  kernel  hidden\n                   -> sudo x\n"
        );
        let json = read(&printed(&diagnosis, true, false));
        assert_eq!(json["findings"][0]["state"], "limited");
        assert_eq!(json["findings"][0]["remedy"], "sudo x");
        assert_eq!(json["schema"], SCHEMA);
        assert!(
            json.get("host").is_none(),
            "nothing is known of the machine that a recording comes from: {json}"
        );
    }

    #[test]
    fn what_the_verifier_said_is_shown_where_it_is_asked_for() {
        let tried = ProgramTrial {
            feature: "off-cpu".into(),
            state: FindingState::Missing,
            says: "refused".into(),
            since: "5.17",
            took_ms: 1.0,
            verifier: vec!["R3 unbounded memory access".into()],
        };
        let mut diagnosis = Diagnosis::new("here".into(), Vec::new());
        diagnosis.programs = vec![tried];
        assert!(!printed(&diagnosis, false, false).contains("R3"));
        assert!(
            printed(&diagnosis, false, true)
                .contains("off-cpu: the kernel's verifier ended with\n  R3 unbounded")
        );
        assert_eq!(
            read(&printed(&diagnosis, true, false))["programs"][0]["verifier"][0],
            "R3 unbounded memory access"
        );
    }

    /// The fields that docs/doctor.md documents are present, whatever the machine allows.
    #[test]
    fn the_machine_is_described_as_documented() {
        let json = read(&printed(&Diagnosis::of_machine(), true, false));
        let host = &json["host"];
        for key in ["kernel", "architecture", "cpus", "is_virtual", "capabilities", "settings"] {
            assert!(host.get(key).is_some_and(|value| !value.is_null()), "{key} is missing: {host}");
        }
        assert_eq!(host["kernel"].as_str(), Some(plumb_process::Host::read().kernel.as_str()));
        let programs = json["programs"].as_array().expect("each feature was tried");
        assert_eq!(programs.len(), plumb_capture_bpf::Feature::ALL.len());
        for entry in programs.iter().chain(json["findings"].as_array().expect("findings are a list")) {
            let state = entry["state"].as_str().unwrap_or_default();
            assert!(["ok", "limited", "missing"].contains(&state), "{entry}");
            assert!(entry["says"].as_str().is_some_and(|says| !says.is_empty()), "{entry}");
        }
        for name in ["stacks", "python", "off-cpu", "trace", "stat"] {
            assert!(programs.iter().any(|entry| entry["feature"] == name), "{name} was not tried: {json}");
        }
    }
}
