//! Arguments of `plumb compare`.

use std::ffi::OsString;

use regex_lite::Regex;

use super::limit::{self, Limit};
use super::side;
use crate::examples;
use crate::limits;

/// Explanation of the columns, and of Ctrl-C.
const CTRL_C: &str = "\
A and B are medians. B / A is the median of the ratios of all pairs of runs (Hodges-Lehmann
estimator), which varies less than the ratio of the medians; the interval is that of B / A.

Ctrl-C goes to the command that runs: plumb waits until it ends, and exits with status 1, without a
verdict. The third Ctrl-C kills the command.";

/// Arguments of `plumb compare`.
#[derive(clap::Args, Debug)]
#[command(override_usage = "plumb compare [OPTIONS] 'COMMAND A' 'COMMAND B'",
          after_help = examples::below(CTRL_C, examples::COMPARE))]
pub struct Args {
    /// Number of measured runs of each command
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(super) runs: u32,
    /// Number of warm-up runs of each command, not measured
    ///
    /// System calls are counted in these runs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) warmup: u32,
    /// Set an environment variable for command A or B
    #[arg(long = "env", value_name = "A:NAME=VALUE", value_parser = side::variable)]
    pub(super) variables: Vec<side::Variable>,
    /// Metric printed by the commands, higher is better: first group of REGEX, or the match
    #[arg(long, value_name = "REGEX")]
    pub(super) metric: Option<Regex>,
    /// Metric printed by the commands, lower is better: first group of REGEX, or the match
    #[arg(long, value_name = "REGEX", conflicts_with = "metric")]
    pub(super) metric_less: Option<Regex>,
    /// Significance level
    #[arg(long, value_name = "PROBABILITY", default_value_t = 0.05, value_parser = limits::probability)]
    pub(super) alpha: f64,
    /// Largest difference that counts as equal
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = limits::percent)]
    pub(super) same: f64,
    /// Exit with status 4 on a significant regression above LIMIT: 'wall>3%', 'cpu>1%'
    #[arg(long, value_name = "LIMIT", value_parser = limit::parse)]
    pub(super) fail_on: Vec<Limit>,
    /// Sample as many further runs, and show which functions explain the difference
    #[arg(long)]
    pub(super) profile: bool,
    /// Show the commands' output; on standard error with --json and --md
    #[arg(long, conflicts_with_all = ["metric", "metric_less"])]
    pub(super) show_output: bool,
    /// Continue when a command fails
    #[arg(long)]
    pub(super) ignore_failure: bool,
    /// Print Markdown
    #[arg(long, conflicts_with = "json")]
    pub(super) md: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Commands to compare; sh runs a command that has shell characters
    #[arg(value_names = ["COMMAND A", "COMMAND B"], num_args = 2, required = true)]
    pub(super) commands: Vec<OsString>,
}
