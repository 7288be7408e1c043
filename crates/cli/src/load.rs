//! Opens whatever FILE names: a recording, or a foreign profile such as perf.data, told apart by its first bytes.

mod kind;
mod perf_data;

use std::fs::File;
use std::io::{Cursor, ErrorKind, Read, Seek};
use std::path::Path;

use anyhow::{Context, Result, bail};
use plumb_formats::native;
use plumb_profile::Profile;

use kind::Kind;

/// What commands read when no file is named.
const DEFAULT: &str = "profile.plumb";

/// Reads the profile in `path`, `-` for standard input, and resolves its symbols if that was not done yet.
///
/// What could not be read of a damaged file is said on standard error and counted in the profile's
/// [`damaged_records`](plumb_profile::Meta::damaged_records).
pub fn load(path: &Path) -> Result<Profile> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).context("standard input")?;
        return read(Cursor::new(bytes), "standard input");
    }
    let name = path.display().to_string();
    if path.is_dir() {
        bail!("{name}: a directory; what `perf record --threads` writes can't be read yet");
    }
    match File::open(path) {
        Ok(file) => read(file, &name),
        Err(error) if error.kind() == ErrorKind::NotFound && path.as_os_str() == DEFAULT => {
            bail!("no recording here ({DEFAULT}): run `plumb record -- CMD` first, or name a file")
        }
        Err(error) => Err(error).context(name),
    }
}

fn read<R: Read + Seek>(mut input: R, name: &str) -> Result<Profile> {
    let mut start = Vec::new();
    input.by_ref().take(kind::BYTES).read_to_end(&mut start).with_context(|| name.to_string())?;
    input.rewind().with_context(|| name.to_string())?;
    let mut profile = match Kind::of(&start) {
        Kind::Recording => native::read(input).with_context(|| name.to_string())?,
        Kind::PerfData => perf_data::read(input, name)?,
        Kind::Other(what) => {
            bail!("{name}: {what}; a plumb recording or a perf.data file is needed")
        }
    };
    if !profile.meta.symbolized {
        plumb_symbolize::symbolize(&mut profile, &plumb_symbolize::Options::default(), &mut |_| {});
    }
    Ok(profile)
}
