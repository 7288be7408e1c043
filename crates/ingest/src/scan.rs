//! Scanning stacks that end for want of unwind information: in files where more than a guess is found, elsewhere for those who ask
//! for it.

use std::fs::File;
use std::os::unix::fs::FileExt;

use plumb_unwind::scan::{self, ReadCode};
use plumb_unwind::{Avma, End, Memory, Registers};

use super::code::View;
use super::spaces::SpaceId;
use super::user::{MAX_FRAMES, WithFiles};
use super::{Ingest, Source};

/// The code of a process: from its files, and from its memory while it runs.
struct Text<'a> {
    view: &'a View<'a>,
    memory: Option<File>,
}

impl ReadCode for Text<'_> {
    fn read(&mut self, at: Avma, to: &mut [u8]) -> bool {
        self.view.read(at, to)
            || self.memory.as_ref().is_some_and(|memory| memory.read_exact_at(to, at.0).is_ok())
    }
}

impl Ingest {
    /// Whether stacks that end for want of unwind information are scanned for return addresses wherever that is
    /// ([`plumb_unwind::scan`]): frames found that way, marked as [`plumb_profile::Found::Scan`], are guesses. Unless asked for,
    /// stacks that end in code of files are, and what is found there has to be confirmed by more ([`scan::resume`], checked).
    pub fn scan_stacks(&mut self, wanted: bool) {
        self.ways.scans = wanted;
    }

    /// Scans a stack whose walk ended like this, if that may help.
    pub(super) fn scan(
        &mut self,
        pid: u32,
        space: SpaceId,
        registers: &Registers,
        memory: &mut impl Memory,
        end: End,
    ) -> End {
        let helps =
            matches!(end, End::NoUnwindInfo | End::BadUnwindInfo | End::RegisterUnknown | End::NotMapped);
        if !helps {
            return end;
        }
        let wants_guesses = self.ways.scans;
        let live = (wants_guesses && self.source == Source::Live)
            .then(|| File::open(format!("/proc/{pid}/mem")).ok());
        let space = self.spaces.get_mut(space);
        let view = View { code: &self.code, mappings: &space.mappings };
        let mut text = Text { view: &view, memory: live.flatten() };
        let mut memory = WithFiles { memory, view: &view };
        let with: (_, &mut dyn ReadCode, _, _) = (&view, &mut text, &mut memory, &mut space.cache);
        scan::resume(!wants_guesses, with, registers, end, MAX_FRAMES, &mut self.walked)
    }
}
