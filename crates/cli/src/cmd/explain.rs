//! `plumb explain`: the hotspot report: what is slow, why, what could be gained at most, whether to go on.
//!
//! The report is built once, as a document, and written as text, Markdown or HTML. Elsewhere: the analysis (analyze), the
//! recording (`plumb record`, which this runs for a command).

mod again;
mod args;
mod lacks;

#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use plumb_analyze::{
    ExplainOptions, Explanation, Filter, command_failure, explained_event, is_clock, is_untold,
};
use plumb_call_watch::CallWatch;
use plumb_capture_api::TargetObserver;
use plumb_profile::{Event, Profile};
use plumb_record::SecondLook;

use plumb_documents::explain::report::{self, ReportCommands, ReportContext};
use plumb_documents::explain::{self as document, ExplainDocument, HotFunctions};

use crate::args::SymfsArgs;
use crate::exit::Exit;
use crate::recording::{self, prints_beside, record_profile};
use crate::render::document::text;
use crate::terminal::{Output, finish};
use plumb_documents::kernel_time;
use plumb_documents::sections::{html, markdown};

pub use args::Args;

/// Runs `plumb explain`.
pub fn run(args: Args) -> Result<Exit> {
    if !args.records() {
        if args.output.is_some() {
            bail!("-o saves a new recording: select a target with -p, -a, --cgroup or -- COMMAND");
        }
        let profile = crate::load::load(&args.file, &args.filters.symfs)?;
        return finish(write(&profile, &args, &mut Output::stdout()));
    }
    let request = recording::request(&args.target, &args.recording, &args.command)?
        .printing(prints_beside(args.json || args.md || args.html));
    // Without the privilege there are only samples, as in a file.
    let watching = CallWatch::begin_in_turns(&request.target).ok();
    let mut second = SecondLook::beside(&request);
    let observer = second.as_mut().map(|second| second as &mut dyn TargetObserver);
    let (profile, exit) = record_profile(&request, args.output.as_deref(), observer)?;
    let waits = second.and_then(SecondLook::profile);
    finish(write_watched(&profile, (watching, waits), &args, &mut Output::stdout()))?;
    Ok(exit)
}

pub(crate) fn write(profile: &Profile, args: &Args, out: &mut Output<'_>) -> Result<()> {
    write_watched(profile, (None, None), args, out)
}

/// Writes the report, with advice from the traced system calls and page faults, and with the recorded waits.
fn write_watched(
    profile: &Profile,
    (watching, second): (Option<CallWatch>, Option<Profile>),
    args: &Args,
    out: &mut Output<'_>,
) -> Result<()> {
    let filter = filter(profile, args)?;
    let call_name = kernel_time::call_names(profile);
    let waits =
        args.waits.as_deref().map(|file| recorded_waits(file, &args.filters.symfs)).transpose()?.or(second);
    let watched = watching.map(|watching| watching.advise(profile, &filter)).transpose()?;
    let (calls, except) = watched.map_or_else(Default::default, |found| (found.advice, found.turns));
    // Samples taken during tracing are slowed by it, and left out.
    let filter = Filter { except, ..filter };
    let view = Explanation::view(profile, &filter);
    let sources = document::sources(&view);
    let options = ExplainOptions {
        calls,
        threshold: args.threshold,
        call_name: &call_name,
        sources: &sources,
        caches: document::caches(),
        waits: waits.as_ref(),
    };
    let code = HotFunctions::read(&view);
    let report = Explanation::new(view, &filter, &code.for_analysis(), &options);
    if report.view.part().samples == 0 {
        if report.left_out.samples > 0 {
            bail!("nothing to explain: no sample passes the filters");
        }
        // A target that waits all the time has no samples.
        if report.saved_at_most().is_none() {
            let failure = command_failure(&profile.meta).map_or_else(String::new, |failure| failure + "; ");
            bail!(
                "{failure}nothing to explain: the recording has no samples; record for longer, or at a higher frequency (-F)"
            );
        }
    }
    print(&report, &code, args, out)?;
    Ok(out.flush()?)
}

/// Prints the report in the format that is asked for.
fn print(report: &Explanation<'_>, code: &HotFunctions, args: &Args, out: &mut Output<'_>) -> Result<()> {
    let profile = report.view.profile();
    let again = again::commands(profile, args.records());
    if args.json {
        let mut answer = ExplainDocument::new(report, code, &args.filters.samples.ignore);
        answer.again = Some(again);
        return Ok(plumb_documents::json::write_pretty(&answer, out)?);
    }
    let is_brief = !(args.full || args.md || args.html);
    let annotate = |name: &str| again::annotate(name, args);
    let names_of = |frame| lacks::remedy_of(report, frame);
    let context = ReportContext {
        file: args.reads(),
        ignore: &args.filters.samples.ignore,
        asks_waits: args.waits.is_some(),
        commands: ReportCommands {
            again: &again,
            full: again::full(args, !report.calls.is_empty()),
            off_cpu: again::off_cpu(profile, args),
            kernel: again::kernel(profile, args),
            annotate: &annotate,
            is_kept: args.is_kept(),
        },
        lacks: if is_brief { lacks::facts(report) } else { Vec::new() },
        names_remedy: lacks::names_remedy(report).filter(|_| is_brief).unwrap_or_default(),
        names_of: &names_of,
    };
    let document = match is_brief {
        true => report::brief(report, code, &context),
        false => report::full(report, code, &context),
    };
    match (args.md, args.html) {
        (true, _) => markdown::write(&document, out)?,
        (_, true) => crate::render::page::deliver(&cleaned(&html::page(&document))?, None, "explain", out)?,
        _ => text::write(&document, out)?,
    }
    Ok(())
}

/// The bytes of a page, with control characters of names replaced as everywhere.
fn cleaned(page: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut out = Output::plain(&mut bytes);
    out.write_all(page.as_bytes())?;
    out.flush()?;
    drop(out);
    Ok(bytes)
}

/// The recording of `--waits`.
fn recorded_waits(file: &Path, symfs: &SymfsArgs) -> Result<Profile> {
    let profile = crate::load::load(file, symfs)?;
    let has_waits = profile.events.iter().any(|(_, event)| profile.strings.get(event.name) == Event::OFF_CPU);
    ensure!(
        has_waits,
        "{} holds no waits; record them by plumb record --off-cpu -o off.plumb ..., then --waits off.plumb",
        file.display()
    );
    Ok(profile)
}

/// The filter for the requested event, or the first event that counts CPU time, or may do so. Without the idle task.
fn filter(profile: &Profile, args: &Args) -> Result<Filter> {
    let filter = args.filters.filter(profile)?;
    let name = |event| profile.strings.get(profile.events[event].name);
    let event = match filter.event {
        Some(event) if !is_clock(name(event)) && !is_untold(name(event)) => {
            bail!(
                "`{}` doesn't go by processor time, which is what is explained; plumb report shows it",
                name(event)
            )
        }
        Some(event) => Some(event),
        None => explained_event(profile),
    };
    if event.is_none() && !profile.samples.is_empty() {
        let names: Vec<&str> = profile.events.iter().map(|(id, _)| name(id)).collect();
        let hint = match names.contains(&Event::OFF_CPU) {
            true => {
                "it holds only waits. Record both: plumb record -e cpu-clock --off-cpu ...; or processor time alone, and name this file with --waits"
            }
            false => "plumb report shows them",
        };
        bail!(
            "no samples of processor time, which is what is explained: there are {}; {hint}",
            names.join(", ")
        );
    }
    Ok(Filter { event, no_idle: true, ..filter })
}
