//! What a command prints: through, nowhere, or kept to find a number in.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use anyhow::{Context, Result};
use plumb_target::Prints;

use super::Args;
use crate::newfile;
use crate::recording::prints_beside;

/// The most that is looked at of what a command prints.
const MOST: u64 = 16 << 20;

/// Where it goes.
pub(super) fn prints(args: &Args) -> Result<Prints> {
    if args.metric.is_none() && args.metric_less.is_none() {
        return Ok(unread(args));
    }
    let file = nameless().context("a temporary file for what the commands print")?;
    Ok(Prints::To(Arc::new(file)))
}

/// Likewise where no number is looked for in it.
pub(super) fn unread(args: &Args) -> Prints {
    if args.show_output { prints_beside(args.json || args.md) } else { Prints::Nowhere }
}

/// What was printed, if it was kept.
pub(super) fn text(prints: &Prints) -> Result<Option<String>> {
    let Prints::To(file) = prints else { return Ok(None) };
    let mut file: &File = file;
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// A file that has lost its name already.
fn nameless() -> std::io::Result<File> {
    let name = format!("plumb-compare-{}", std::process::id());
    let mut error = ErrorKind::NotFound.into();
    for path in newfile::temporary_folders().map(|folder| folder.join(&name)) {
        match File::options().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return std::fs::remove_file(path).map(|()| file),
            Err(other) => error = other,
        }
    }
    Err(error)
}
