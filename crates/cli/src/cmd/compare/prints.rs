//! Output of the compared commands: passed through, discarded, or kept to find a number in.

use std::fs::File;
use std::io::{Read, Seek};
use std::sync::Arc;

use anyhow::{Context, Result};
use plumb_record::nameless_file;
use plumb_target::Prints;

use super::Args;
use crate::recording::prints_beside;

/// Most bytes of a command's output that are read.
const MOST: u64 = 16 << 20;

/// The destination of the output.
pub(super) fn prints(args: &Args) -> Result<Prints> {
    if args.metric.is_none() && args.metric_less.is_none() {
        return Ok(unread(args));
    }
    let file = nameless_file().context("cannot create a temporary file for the commands' output")?;
    Ok(Prints::To(Arc::new(file)))
}

/// The destination if no number is looked for in the output.
pub(super) fn unread(args: &Args) -> Prints {
    if args.show_output { prints_beside(args.json || args.md) } else { Prints::Nowhere }
}

/// The output, if it was kept.
pub(super) fn text(prints: &Prints) -> Result<Option<String>> {
    let Prints::To(file) = prints else { return Ok(None) };
    let mut file: &File = file;
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
