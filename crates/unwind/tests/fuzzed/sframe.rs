//! Any bytes as a `.sframe` section.

use plumb_unwind::{CfiErrorKind, Module, Section, Sections, Svma, sframe};

/// The output is readable entries, not more of them than the section has bytes for.
pub fn run(data: &[u8]) {
    let mut asked = 0;
    let mut starts = Vec::new();
    let entries = sframe::eh_frame(data, Svma(0x1000), |at| {
        asked += 1;
        starts.push(at);
        true
    });
    assert!(asked <= data.len() / 16, "{asked} functions in {} bytes", data.len());
    let Some(entries) = entries else { return };
    // Blocks of a function that are alike come to some more.
    assert!(entries.len() < 64 * data.len() + (40 << 16), "{} of {}", entries.len(), data.len());
    let eh_frame = Some(Section { address: Svma(0), bytes: entries });
    let module: Module<Vec<u8>> = Module::new(Sections { eh_frame, ..Sections::default() });
    for at in starts {
        // Two functions may be at one place. The entries are well formed all the same, if larger than the reader's limits.
        let row = module.row(at);
        let is_sound = row.as_ref().map_or_else(|error| error.kind == CfiErrorKind::TooLarge, |_| true);
        assert!(is_sound, "{at:?}: {row:?}");
    }
}
