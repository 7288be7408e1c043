//! Reads a recording: nothing in the file is believed before it has been checked against what is there.

mod archive;
mod error;
mod guard;
mod lives;
mod pages;
mod tables;
mod thrift;
mod values;

use std::io::{Read, Seek};

use plumb_profile::Profile;

pub use error::ReadError;

/// Reads a recording that [`write`](fn@super::write) wrote, of this format version or an older one.
///
/// What is kept in memory is bounded by the size of the input: 64 MiB, and 256 bytes for each of its bytes.
pub fn read<R: Read + Seek>(input: R) -> Result<Profile, ReadError> {
    let mut archive = archive::Archive::open(input)?;
    let mut profile = Profile { meta: archive.meta()?, ..Profile::default() };
    tables::strings(&archive.table("strings")?, &mut profile)?;
    tables::events(&archive.table("events")?, &mut profile)?;
    tables::dsos(&archive.table("dsos")?, &mut profile)?;
    tables::processes(&archive.table("processes")?, &mut profile)?;
    tables::threads(&archive.table("threads")?, &mut profile)?;
    if let Some(table) = archive.table_if_there("lives")? {
        lives::read(&table, &mut profile)?;
    }
    tables::mappings(&archive.table("mappings")?, &mut profile)?;
    tables::frames(&archive.table("frames")?, &mut profile)?;
    tables::functions(&archive.table("functions")?, &mut profile)?;
    tables::lines(&archive.table("lines")?, &mut profile)?;
    tables::stacks(&archive.table("stacks")?, &mut profile)?;
    tables::samples(&archive.table("samples")?, &mut profile)?;
    Ok(profile)
}
