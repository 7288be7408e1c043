//! `plumb flame`: writes a flame graph to one file, HTML or SVG.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use plumb_analyze::{Filter, Flame, Grouping, View};
use plumb_documents::answers::{LoadedRecording, NamedFiles};
use plumb_documents::flame::{default_grouping, svg};
use plumb_documents::page_file;
use plumb_profile::Profile;

use crate::args::FilterArgs;
use crate::examples;
use crate::exit::Exit;
use crate::loaded;
use crate::render::flame::{Facts, FlameFormat, format_of, write};
use crate::terminal::say;

/// Arguments of `plumb flame`.
#[derive(clap::Args, Debug)]
#[command(after_help = examples::FLAME)]
pub struct Args {
    /// Recording, or a profile of another tool
    #[arg(default_value = "profile.plumb")]
    file: PathBuf,
    /// Output file, .html or .svg
    #[arg(short, long, value_name = "FILE", default_value = "flame.html")]
    output: PathBuf,
    /// Draw stacks from the top down (icicle graph)
    #[arg(long)]
    icicle: bool,
    /// Group stacks [default: comm for a recording of the machine, otherwise none]
    #[arg(long, value_name = "KEY", value_enum)]
    by: Option<By>,
    /// Title of the graph [default: the recorded command]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Open the result in a browser
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    filters: FilterArgs,
}

/// Groups that stacks can be split into.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum By {
    /// By thread
    Thread,
    /// By thread name
    Comm,
    /// By process
    Process,
    /// No groups
    None,
}

impl From<By> for Grouping {
    fn from(by: By) -> Self {
        match by {
            By::Thread => Grouping::Thread,
            By::Comm => Grouping::Comm,
            By::Process => Grouping::Process,
            By::None => Grouping::None,
        }
    }
}

/// Runs `plumb flame`.
pub fn run(args: Args) -> Result<Exit> {
    // Before the work: an unknown file extension is reported at once.
    let format = format_of(&args.output)?;
    let recording = loaded::load(&args.file, &args.filters.symfs)?;
    let filter = filter_of(&recording.profile, &args.filters)?;
    let bytes = draw(&recording, &filter, &args, format)?;
    write(&args.output, &bytes)?;
    if args.open {
        open(&args.output)?;
    }
    Ok(Exit::Success)
}

/// The filter for one event: a flame graph can't add nanoseconds to page faults.
fn filter_of(profile: &Profile, filters: &FilterArgs) -> Result<Filter> {
    let mut per_event = filters.filter_per_event(profile)?;
    if per_event.len() > 1 {
        let names: Vec<&str> = per_event
            .iter()
            .filter_map(|f| f.event)
            .map(|id| profile.strings.get(profile.events[id].name))
            .collect();
        say!("drawing {}; --event chooses among {}", names[0], names.join(", "));
    }
    Ok(per_event.swap_remove(0))
}

fn draw(recording: &LoadedRecording, filter: &Filter, args: &Args, format: FlameFormat) -> Result<Vec<u8>> {
    let profile = &*recording.profile;
    let view = View::new(profile, filter);
    let by = args.by.map_or_else(|| default_grouping(profile), Grouping::from);
    let flame = Flame::new(&view, by);
    if flame.total().samples == 0 {
        let why = if profile.samples.is_empty() {
            "the recording has no samples"
        } else {
            "no sample passes the filters"
        };
        bail!("{}: nothing to draw, {why}", args.file.display());
    }
    let facts = facts(&view, filter, args);
    match format {
        FlameFormat::Html => {
            let selection = args.filters.parameters();
            Ok(page_file::of_flame(recording, (&flame, &facts), &selection, NamedFiles::Read)?)
        }
        FlameFormat::Svg => svg::picture(&flame, &facts).context("drawing the SVG"),
    }
}

fn facts(view: &View<'_>, filter: &Filter, args: &Args) -> Facts {
    let facts = Facts::new(view, filter, &args.file.display().to_string());
    let title = args.title.clone().unwrap_or(facts.title);
    let filters = Some(args.filters.typed()).filter(|text| !text.is_empty());
    Facts { title, filters, icicle: args.icicle, ..facts }
}

/// Opens the file in the desktop's viewer, which outlives this process.
fn open(path: &Path) -> Result<()> {
    let viewer = Command::new("xdg-open").arg(path).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    viewer.with_context(|| format!("--open: cannot start xdg-open; open {} by hand", path.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests;
