//! Reads a recording: nothing in the file is trusted before it is validated.

mod archive;
mod error;
mod journal;
mod lives;
mod registers;
mod tables;
mod values;

use std::io::{Read, Seek};

pub use plumb_columns::panics_become_errors;
use plumb_profile::Profile;

pub use error::ReadError;
pub use journal::{Unfinished, read_unfinished};
pub(super) use journal::{part_lives, part_mappings, part_samples, part_stacks};

use self::archive::Archive;
use self::tables::StackIds;
use super::registers::LAYOUTS;

/// Reads a recording that [`write`](fn@super::write) wrote, of this format version or an older one.
///
/// Memory is bounded by the size of the input: 64 MiB plus 256 bytes per byte.
pub fn read<R: Read + Seek>(input: R) -> Result<Profile, ReadError> {
    let mut archive = Archive::open(input)?;
    let (meta, (major, _)) = archive.meta()?;
    let mut profile = Profile { meta, ..Profile::default() };
    named(&mut archive, 0, &mut profile)?;
    let is_in_parts = major >= super::version::IN_PARTS.0;
    let mut stacks = StackIds::new(is_in_parts);
    tables::stacks(&archive.table("stacks")?, &mut stacks, &mut profile)?;
    tables::samples(&archive.table("samples")?, &stacks, &mut profile)?;
    for layout in LAYOUTS {
        if let Some(table) = archive.table_if_there(layout.table)? {
            registers::read(&table, layout, &mut profile)?;
        }
    }
    if is_in_parts {
        profile.samples.sort_by_time();
    }
    Ok(profile)
}

/// Reads all tables except stacks and samples, appending to existing rows; `strings` is the number of strings read before.
fn named<R: Read + Seek>(
    archive: &mut Archive<R>,
    strings: usize,
    profile: &mut Profile,
) -> Result<(), ReadError> {
    tables::strings(&archive.table("strings")?, strings, profile)?;
    tables::events(&archive.table("events")?, profile)?;
    tables::dsos(&archive.table("dsos")?, profile)?;
    tables::processes(&archive.table("processes")?, profile)?;
    tables::threads(&archive.table("threads")?, profile)?;
    if let Some(table) = archive.table_if_there("lives")? {
        lives::read(&table, profile)?;
    }
    tables::mappings(&archive.table("mappings")?, profile)?;
    tables::frames(&archive.table("frames")?, profile)?;
    tables::functions(&archive.table("functions")?, profile)?;
    tables::lines(&archive.table("lines")?, profile)
}
