//! `plumb diff`: what changed between recordings, and what of it is no chance.
//!
//! Not here: matching rows and testing them (analyze), making recordings.

mod limit;
pub(in crate::cmd) mod machine;
mod markdown;
mod picture;
#[cfg(test)]
mod tests;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use plumb_analyze::{By, Diff, DiffOptions, DiffRow, Filter, Mark, Per, View, is_clock};
use plumb_profile::Profile;

use self::limit::Limit;
use crate::args::FilterArgs;
use crate::args::value;
use crate::examples;
use crate::exit::Exit;
use crate::limits;
use crate::render::flame;
use crate::terminal::{Output, finish, say};
use crate::words::parsed;
use plumb_report::kernel_time;

/// What is compared if nothing is named: the recording before, as `plumb record` keeps it, and the last.
const LAST_TWO: [&str; 2] = ["profile.plumb.old", "profile.plumb"];

/// Arguments of `plumb diff`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "plumb diff [OPTIONS] BASE NEW\n       plumb diff [OPTIONS] BASE... -- NEW...\n       plumb diff [OPTIONS]",
    after_help = examples::DIFF
)]
pub struct Args {
    /// Recordings before the change; several are runs of the same work
    #[arg(value_name = "BASE")]
    base: Vec<PathBuf>,
    /// Recordings after the change
    #[arg(last = true, value_name = "NEW")]
    new: Vec<PathBuf>,
    /// Kind of rows
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Rows::Function)]
    by: Rows,
    /// Include the time of called functions
    #[arg(long)]
    children: bool,
    /// Unit of comparison [default: total, or iteration with --iterations]
    #[arg(long, value_name = "UNIT", value_enum)]
    per: Option<PerWhat>,
    /// Iterations of the work in each recording, of the base and of the new side
    #[arg(long, value_name = "BASE,NEW", value_parser = iterations)]
    iterations: Option<[f64; 2]>,
    /// False discovery rate among the marked rows
    #[arg(long, value_name = "PROBABILITY", default_value_t = 0.05, value_parser = limits::probability)]
    alpha: f64,
    /// Exit with status 4 on a significant regression above LIMIT: 'total>3%', 'func:parse*>1%'
    ///
    /// LIMIT is a percentage of the total of the base.
    #[arg(long, value_name = "LIMIT", value_parser = limit::parse)]
    fail_on: Vec<Limit>,
    /// Sum up unmarked rows below this share of both sides, in percent [default: 0.5; 0 with --json]
    #[arg(long, value_name = "PERCENT", value_parser = value::percent)]
    min: Option<f64>,
    /// Show full names and paths, without shortening
    #[arg(long)]
    full_names: bool,
    /// Write a differential flame graph to FILE too, .html or .svg
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print Markdown
    #[arg(long, conflicts_with_all = ["json", "html"])]
    md: bool,
    /// Write a self-contained HTML page to standard output, or to COMMAND.html on a terminal
    ///
    /// The page has a differential flame graph.
    #[arg(long, conflicts_with = "json")]
    html: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    filters: FilterArgs,
}

/// What rows can be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Rows {
    /// Functions
    Function,
    /// Whole stacks
    Path,
    /// Source lines
    Line,
    /// System calls and other kernel work
    Syscall,
}

impl From<Rows> for By {
    fn from(rows: Rows) -> Self {
        match rows {
            Rows::Function => By::Function,
            Rows::Path => By::Path,
            Rows::Line => By::Line,
            Rows::Syscall => By::Syscall,
        }
    }
}

/// What values can be of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum PerWhat {
    /// The whole recording, where both sides did the same work
    Total,
    /// A second of CPU time
    CpuS,
    /// An iteration of the work
    Iteration,
}

/// Reads `10,12`.
fn iterations(text: &str) -> Result<[f64; 2], String> {
    let wrong = || format!("expected two numbers above 0, such as 1000,1500, not {text:?}");
    let (base, new) = text.split_once(',').ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| *n > 0.0 && n.is_finite());
    Ok([number(base).ok_or_else(wrong)?, number(new).ok_or_else(wrong)?])
}

/// A recording and where it came from.
struct Recording {
    path: PathBuf,
    profile: Arc<Profile>,
    filter: Filter,
}

/// What is shown.
struct Shown<'a, 'p> {
    diff: &'a Diff<'a, 'p>,
    /// Of the base and of the new side: where recordings came from, and what they are.
    sides: [&'a [Recording]; 2],
    views: [&'a [View<'p>]; 2],
    event: String,
    unit: String,
    args: &'a Args,
}

impl<'a> Shown<'a, '_> {
    /// Rows below this share of both sides are summed up, if they are not marked.
    fn least(&self) -> f64 {
        self.args.min.unwrap_or(if self.args.json { 0.0 } else { 0.5 }) / 100.0
    }

    fn is_shown(&self, row: &DiffRow) -> bool {
        let share = row.change.share[0].max(row.change.share[1]);
        share >= self.least() || row.change.mark(self.diff.options.alpha) != Mark::Noise
    }

    fn rows(&self) -> impl Iterator<Item = &'a DiffRow> {
        self.diff.rows.iter().filter(|row| self.is_shown(row))
    }

    /// How many others there are, and their shares of both sides together.
    fn rest(&self) -> (usize, [f64; 2]) {
        let rest = self.diff.rows.iter().filter(|row| !self.is_shown(row));
        rest.fold((0, [0.0; 2]), |(rows, [base, new]), row| {
            (rows + 1, [base + row.change.share[0], new + row.change.share[1]])
        })
    }
}

/// Writes for people what changed from one recording to another.
pub fn written(base: &Path, new: &Path, filters: &FilterArgs, out: &mut Output<'_>) -> Result<()> {
    let args = Args { filters: filters.clone(), ..parsed("diff", &[base, new])? };
    compare(&args, out).map(drop)
}

/// Runs `plumb diff`.
pub fn run(args: Args) -> Result<Exit> {
    compare(&args, &mut Output::stdout())
}

fn compare(args: &Args, out: &mut Output<'_>) -> Result<Exit> {
    // Before the work: a name that says nothing is known at once.
    let format = args.output.as_deref().map(flame::format_of).transpose()?;
    let [base, new] = sides(args)?;
    let [base, new] = [read(&base, args)?, read(&new, args)?];
    let (event, unit) = the_event(base.iter().chain(&new))?;
    let per = per(args, &event, &unit)?;
    let options = DiffOptions { by: args.by.into(), children: args.children, per, alpha: args.alpha };
    let (base_views, new_views) = (views(&base), views(&new));
    for (view, one) in base_views.iter().chain(&new_views).zip(base.iter().chain(&new)) {
        if view.samples().len() == 0 {
            bail!(
                "{}: no samples{}",
                one.path.display(),
                if one.filter.takes_a_part() { " that the filters keep" } else { "" }
            );
        }
    }
    let abi = base.first().and_then(|one| kernel_time::abi(&one.profile.meta.arch));
    let diff = Diff::new(&base_views, &new_views, options, |number| plumb_syscalls::name(abi?, number));
    for limit in &args.fail_on {
        limit.check(&diff)?;
    }
    let shown =
        Shown { diff: &diff, sides: [&base, &new], views: [&base_views, &new_views], event, unit, args };
    if let (Some(output), Some(format), false) = (&args.output, format, args.html) {
        flame::write(output, &picture::draw(&shown, format)?)?;
    }
    finish(match (args.json, args.md, args.html) {
        (true, ..) => machine::json(&shown, out),
        (_, true, _) => markdown::write(&shown, out),
        (_, _, true) => page(&shown, out),
        _ => text::write(&shown, out),
    })?;
    let exceeded = args.fail_on.iter().filter(|limit| limit.is_exceeded(&diff)).inspect(|limit| {
        say!("regression limit exceeded: {limit}");
    });
    Ok(if exceeded.count() > 0 { Exit::LimitExceeded } else { Exit::Success })
}

fn page(shown: &Shown<'_, '_>, out: &mut Output<'_>) -> Result<()> {
    let page = picture::draw(shown, flame::Format::Html)?;
    crate::render::page::deliver(&page, shown.args.output.as_deref(), "diff", out)?;
    Ok(out.flush()?)
}

fn views(side: &[Recording]) -> Vec<View<'_>> {
    side.iter().map(|one| View::new(&one.profile, &one.filter)).collect()
}

/// The files of both sides.
fn sides(args: &Args) -> Result<[Vec<PathBuf>; 2]> {
    match (&args.base[..], &args.new[..]) {
        ([], []) if LAST_TWO.iter().all(|name| Path::new(name).exists()) => {
            Ok(LAST_TWO.map(|name| vec![name.into()]))
        }
        ([], []) => {
            bail!("plumb diff needs two recordings: plumb diff BASE NEW (there is no {})", LAST_TWO[0])
        }
        ([base, new], []) => Ok([vec![base.clone()], vec![new.clone()]]),
        (base, new) if !base.is_empty() && !new.is_empty() => Ok([base.to_vec(), new.to_vec()]),
        _ => bail!(
            "which recordings are new? plumb diff BASE NEW, or with several of a side plumb diff BASE... -- NEW..."
        ),
    }
}

fn read(paths: &[PathBuf], args: &Args) -> Result<Vec<Recording>> {
    let one = |path: &PathBuf| {
        let profile = Arc::new(crate::load::load(path)?);
        let mut filters = args.filters.filter_per_event(&profile)?;
        // Of several events the one that goes by processor time.
        let by_clock = |filter: &Filter| {
            filter.event.is_none_or(|event| is_clock(profile.strings.get(profile.events[event].name)))
        };
        let at = filters.iter().position(by_clock).unwrap_or(0);
        Ok(Recording { path: path.clone(), filter: filters.swap_remove(at), profile })
    };
    paths.iter().map(one).collect()
}

/// Name and unit of the event, which has to be the same in all recordings but for what perf writes behind a colon.
fn the_event<'r>(recordings: impl Iterator<Item = &'r Recording>) -> Result<(String, String)> {
    let mut found: Option<(String, String)> = None;
    for one in recordings {
        let profile = &one.profile;
        let event = one.filter.event.map(|event| &profile.events[event]).or(profile.events.rows().first());
        let text = |id| profile.strings.get(id).to_owned();
        let (name, unit) = event.map_or_else(Default::default, |event| (text(event.name), text(event.unit)));
        let name = name.split(':').next().unwrap_or_default().to_owned();
        match &found {
            None => found = Some((name, unit)),
            // Clocks of different names count the same.
            Some((known, same)) if *known == name || *same == unit && is_clock(known) && is_clock(&name) => {}
            Some((known, _)) => bail!(
                "{}: samples of {name} can't be compared with samples of {known}; --event chooses",
                one.path.display()
            ),
        }
    }
    Ok(found.unwrap_or_default())
}

fn per(args: &Args, event: &str, unit: &str) -> Result<Per> {
    match (args.per, args.iterations) {
        (None | Some(PerWhat::Iteration), Some(counts)) => Ok(Per::Iteration(counts)),
        (Some(PerWhat::Iteration), None) => {
            bail!("--per iteration needs to know how many there were: --iterations BASE,NEW")
        }
        (Some(_), Some(_)) => bail!("--iterations goes with --per iteration"),
        (Some(PerWhat::CpuS), None) if unit != "ns" || !is_clock(event) => {
            bail!("--per cpu-s: {event} does not go by processor time")
        }
        (Some(PerWhat::CpuS), None) => Ok(Per::Second),
        (None | Some(PerWhat::Total), None) => Ok(Per::Total),
    }
}
