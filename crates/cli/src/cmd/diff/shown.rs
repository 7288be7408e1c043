//! Arguments of `plumb diff`, and the selection of rows to show.

use std::path::PathBuf;
use std::sync::Arc;

use plumb_analyze::{By, Diff, DiffRow, Filter, Mark, View};
use plumb_documents::change::{ChangedRow, ComparedSides, DiffDocument};
use plumb_profile::Profile;

use super::limit::{self, Limit};
use crate::args::FilterArgs;
use crate::args::value;
use crate::examples;
use crate::limits;
use crate::pager;

/// Arguments of `plumb diff`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "plumb diff [OPTIONS] BASE NEW\n       plumb diff [OPTIONS] BASE... -- NEW...\n       plumb diff [OPTIONS]",
    after_help = examples::below(pager::HELP, examples::DIFF)
)]
pub struct Args {
    /// Recordings before the change; several are runs of the same work
    #[arg(value_name = "BASE")]
    pub(super) base: Vec<PathBuf>,
    /// Recordings after the change
    #[arg(last = true, value_name = "NEW")]
    pub(super) new: Vec<PathBuf>,
    /// Kind of rows
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Rows::Function)]
    pub(super) by: Rows,
    /// Include the time of called functions
    #[arg(long)]
    pub(super) children: bool,
    /// Unit of comparison [default: total, or iteration with --iterations]
    #[arg(long, value_name = "UNIT", value_enum)]
    pub(super) per: Option<PerWhat>,
    /// Iterations of the work in each recording, of the base and of the new side
    #[arg(long, value_name = "BASE,NEW", value_parser = iterations)]
    pub(super) iterations: Option<[f64; 2]>,
    /// False discovery rate among the marked rows
    #[arg(long, value_name = "PROBABILITY", default_value_t = 0.05, value_parser = limits::probability)]
    pub(super) alpha: f64,
    /// Exit with status 4 on a significant regression above LIMIT: 'total>3%', 'func:parse*>1%'
    ///
    /// LIMIT is a percentage of the total of the base.
    #[arg(long, value_name = "LIMIT", value_parser = limit::parse)]
    pub(super) fail_on: Vec<Limit>,
    /// Sum up unmarked rows below this share of both sides, in percent [default: 0.5; 0 with --json]
    #[arg(long, value_name = "PERCENT", value_parser = value::percent)]
    pub(super) min: Option<f64>,
    /// Show full names and paths, without shortening
    #[arg(long)]
    pub(super) full_names: bool,
    /// Write a differential flame graph to FILE too, .html or .svg
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Print Markdown
    #[arg(long, conflicts_with_all = ["json", "html"])]
    pub(super) md: bool,
    /// Write a self-contained HTML page to standard output, or to COMMAND.html on a terminal
    ///
    /// The page has a differential flame graph.
    #[arg(long, conflicts_with = "json")]
    pub(super) html: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) filters: FilterArgs,
}

/// Kinds of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum Rows {
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

/// Units that values may be divided by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum PerWhat {
    /// The whole recording, where both sides did the same work
    Total,
    /// A second of CPU time
    CpuS,
    /// An iteration of the work
    Iteration,
}

/// Reads `10,12`.
pub(super) fn iterations(text: &str) -> Result<[f64; 2], String> {
    let wrong = || format!("expected two numbers above 0, such as 1000,1500, not {text:?}");
    let (base, new) = text.split_once(',').ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| *n > 0.0 && n.is_finite());
    Ok([number(base).ok_or_else(wrong)?, number(new).ok_or_else(wrong)?])
}

/// A recording and where it came from.
pub(super) struct Recording {
    pub(super) path: PathBuf,
    pub(super) profile: Arc<Profile>,
    pub(super) filter: Filter,
}

/// The comparison with its options, as the output formats show it.
pub(super) struct Shown<'a, 'p> {
    pub(super) diff: &'a Diff<'a, 'p>,
    /// Recordings of the base and of the new side, with their files.
    pub(super) sides: [&'a [Recording]; 2],
    pub(super) views: [&'a [View<'p>]; 2],
    pub(super) event: String,
    pub(super) unit: String,
    pub(super) args: &'a Args,
}

impl<'a> Shown<'a, '_> {
    /// Unmarked rows below this share of both sides are summed up.
    pub(super) fn least(&self) -> f64 {
        self.args.min.unwrap_or(if self.args.json { 0.0 } else { 0.5 }) / 100.0
    }

    pub(super) fn is_shown(&self, row: &DiffRow) -> bool {
        let share = row.change.share[0].max(row.change.share[1]);
        share >= self.least() || row.change.mark(self.diff.options.alpha) != Mark::Noise
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &'a DiffRow> {
        self.diff.rows.iter().filter(|row| self.is_shown(row))
    }

    /// The comparison as a document. `sides` describes the base and the new side.
    pub(super) fn document<'d>(&'d self, sides: ComparedSides<'d>) -> DiffDocument<'d> {
        let rows = self.rows().map(|row| ChangedRow::new(row, self.diff)).collect();
        DiffDocument::new(self.diff, Some(&self.event), Some(&self.unit), sides, rows)
    }

    /// Number of rows that are not shown, and their share of each side.
    pub(super) fn rest(&self) -> (usize, [f64; 2]) {
        let rest = self.diff.rows.iter().filter(|row| !self.is_shown(row));
        rest.fold((0, [0.0; 2]), |(rows, [base, new]), row| {
            (rows + 1, [base + row.change.share[0], new + row.change.share[1]])
        })
    }
}
