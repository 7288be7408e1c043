//! `plumb annotate`: one function, instruction by instruction and line by line.

mod choose;
mod fold;
mod gaps;
mod header;
mod jumps;
mod lines;
mod machine;
mod page;
mod rows;
mod shown;
mod text;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use plumb_analyze::{Filter, View};
use plumb_profile::Profile;
use plumb_symbolize::Options;

use crate::args::FilterArgs;
use crate::exit::Exit;
use crate::terminal::{Output, finish, say};
use plumb_report::code::annotate;
use plumb_report::source::Sources;

pub use shown::Args;
use shown::{Shown, Style};

/// Runs `plumb annotate`.
pub fn run(args: Args) -> Result<Exit> {
    let args = args.in_order();
    let file = args.file.clone().unwrap_or_else(|| PathBuf::from("profile.plumb"));
    let profile = crate::load::load(&file)?;
    let mut out = Output::stdout();
    finish(write(&profile, &args, &mut out))
}

/// Writes the listing of a function, of the samples of one event.
pub fn listing(profile: &Profile, filter: &Filter, function: &str, out: &mut Output<'_>) -> Result<()> {
    let args = Args { function: function.into(), ..Args::default() };
    write_filtered(profile, filter, &args, out)
}

fn write(profile: &Profile, args: &Args, out: &mut Output<'_>) -> Result<()> {
    write_filtered(profile, &one_event(profile, &args.filters)?, args, out)
}

fn write_filtered(profile: &Profile, filter: &Filter, args: &Args, out: &mut Output<'_>) -> Result<()> {
    let view = View::new(profile, filter);
    let function = choose::function(&view, &args.function)?;
    let options = Options::default();
    let annotated = annotate(&view, &function, &options)
        .with_context(|| format!("{} in {}", function.name, function.path))?;
    let sources = Sources::new(args.source_map.clone());
    let mut shown = Shown { view: &view, filter, function: &function, annotated: &annotated, sources };
    if args.html {
        let page = page::page(&mut shown, args);
        crate::render::page::deliver(page.as_bytes(), args.output.as_deref(), "annotate", out)?;
    } else if args.json {
        machine::json(&mut shown, out)?;
    } else {
        text::write(&mut shown, args, out)?;
    }
    out.flush()?;
    Ok(())
}

/// The filter for one event: nanoseconds can't be added to page faults.
fn one_event(profile: &Profile, filters: &FilterArgs) -> Result<Filter> {
    let mut per_event = filters.filter_per_event(profile)?;
    if per_event.len() > 1 {
        let names: Vec<&str> = per_event
            .iter()
            .filter_map(|filter| filter.event)
            .map(|event| profile.strings.get(profile.events[event].name))
            .collect();
        say!("showing {}; --event chooses among {}", names[0], names.join(", "));
    }
    if profile.samples.is_empty() {
        bail!("the recording has no samples");
    }
    Ok(per_event.swap_remove(0))
}
