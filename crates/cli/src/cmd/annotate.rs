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
mod text;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use plumb_analyze::{Filter, SampledFunction, View};
use plumb_profile::Profile;
use plumb_symbolize::Options;

use crate::args::FilterArgs;
use crate::args::value;
use crate::examples;
use crate::exit::Exit;
use crate::terminal::{Output, finish, say};
use plumb_report::code::{Annotated, annotate};
use plumb_report::source::{Map, Sources};

/// Arguments of `plumb annotate`.
#[derive(clap::Args, Debug, Default)]
#[command(allow_missing_positional = true, after_help = examples::ANNOTATE)]
pub struct Args {
    /// Recording, or a profile of another tool [default: profile.plumb]
    file: Option<PathBuf>,
    /// Function to annotate: TEXT, /REGEX/, TEXT@FILE or /REGEX/@FILE
    ///
    /// Parameters may be left out. Without a symbol: an address in the function, 0x1234@FILE.
    function: String,
    /// Show instructions only
    #[arg(long, conflicts_with_all = ["src", "both"])]
    asm: bool,
    /// Show source lines only
    #[arg(long, conflicts_with = "both")]
    src: bool,
    /// Show instructions below their source lines [default if lines are known]
    #[arg(long)]
    both: bool,
    /// Look up source files below TO whose paths begin with FROM
    #[arg(long, value_name = "FROM=TO")]
    source_map: Vec<Map>,
    /// Show the context of instructions with at least this share of the function, in percent [default: 0; 0.1 for long functions]
    #[arg(long, value_name = "PERCENT", value_parser = value::percent)]
    min: Option<f64>,
    /// Show the context of the N hottest instructions
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a self-contained HTML page to standard output, or to COMMAND.html on a terminal
    #[arg(long, conflicts_with = "json")]
    html: bool,
    /// Output file of --html
    #[arg(short, long, value_name = "FILE", requires = "html")]
    output: Option<PathBuf>,
    #[command(flatten)]
    filters: FilterArgs,
}

impl Args {
    /// The same with the file first, in whichever order the two were given: only one of them is a file.
    fn in_order(mut self) -> Self {
        if let Some(file) = self.file.take() {
            match file.to_str().filter(|_| !file.exists() && PathBuf::from(&self.function).is_file()) {
                Some(function) => {
                    self.file =
                        Some(PathBuf::from(std::mem::replace(&mut self.function, function.to_owned())));
                }
                None => self.file = Some(file),
            }
        }
        self
    }
}

/// What is shown.
struct Shown<'a, 'p> {
    view: &'a View<'p>,
    filter: &'a Filter,
    function: &'a SampledFunction,
    annotated: &'a Annotated,
    sources: Sources,
}

/// What the listing is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Style {
    Instructions,
    Lines,
    Both,
}

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

impl Args {
    /// What to show, where nothing was asked for: lines where there are any.
    fn style(&self, annotated: &Annotated) -> Style {
        let has_lines =
            annotated.annotation.rows.iter().any(|row| row.places.iter().any(|place| place.line > 0));
        match (self.asm, self.src) {
            (true, _) => Style::Instructions,
            (_, true) => Style::Lines,
            _ if self.both || has_lines => Style::Both,
            _ => Style::Instructions,
        }
    }
}
