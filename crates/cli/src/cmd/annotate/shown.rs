//! Arguments of `plumb annotate`.

use std::path::PathBuf;

use crate::args::FilterArgs;
use crate::args::value;
use crate::examples;
use plumb_documents::code::Annotated;
use plumb_documents::listing::rows::{HotContext, ListingStyle};
use plumb_documents::source::Map;

/// Arguments of `plumb annotate`.
#[derive(clap::Args, Debug, Default)]
#[command(allow_missing_positional = true, after_help = examples::ANNOTATE)]
pub struct Args {
    /// Recording, or a profile of another tool [default: profile.plumb]
    pub(super) file: Option<PathBuf>,
    /// Function to annotate: TEXT, /REGEX/, TEXT@FILE or /REGEX/@FILE
    ///
    /// Parameters may be left out. Without a symbol: an address in the function, FILE+0x1234 or 0x1234@FILE.
    pub(super) function: String,
    /// Show instructions only
    #[arg(long, conflicts_with_all = ["src", "both"])]
    pub(super) asm: bool,
    /// Show source lines only
    #[arg(long, conflicts_with = "both")]
    pub(super) src: bool,
    /// Show instructions below their source lines [default if lines are known]
    #[arg(long)]
    pub(super) both: bool,
    /// Look up source files below TO whose paths begin with FROM
    #[arg(long, value_name = "FROM=TO")]
    pub(super) source_map: Vec<Map>,
    /// Show the context of instructions with at least this share of the function, in percent [default: 0; 0.1 for long functions]
    #[arg(long, value_name = "PERCENT", value_parser = value::percent)]
    pub(super) min: Option<f64>,
    /// Show the context of the N hottest instructions
    #[arg(long, value_name = "N")]
    pub(super) limit: Option<usize>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Write a self-contained HTML page to standard output, or to COMMAND.html on a terminal
    #[arg(long, conflicts_with = "json")]
    pub(super) html: bool,
    /// Output file of --html
    #[arg(short, long, value_name = "FILE", requires = "html")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) filters: FilterArgs,
}

impl Args {
    /// The arguments with the file first, in whichever order they were given: only one of them is a file.
    pub(super) fn in_order(mut self) -> Self {
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

    /// The instructions and lines to show.
    pub(super) fn context(&self) -> HotContext {
        HotContext { min: self.min, limit: self.limit }
    }

    /// The default content: lines if any are known.
    pub(super) fn style(&self, annotated: &Annotated) -> ListingStyle {
        let has_lines =
            annotated.annotation.rows.iter().any(|row| row.places.iter().any(|place| place.line > 0));
        // Interpreted functions have only lines.
        if annotated.texts.is_empty() && has_lines {
            return ListingStyle::Lines;
        }
        match (self.asm, self.src) {
            (true, _) => ListingStyle::Instructions,
            (_, true) => ListingStyle::Lines,
            _ if self.both || has_lines => ListingStyle::Both,
            _ => ListingStyle::Instructions,
        }
    }
}
