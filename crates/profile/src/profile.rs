//! The profile as a whole: all of its tables.

use std::path::PathBuf;

use crate::dso::{AddressSpace, Dso, DsoId, DsoKind};
use crate::event::{Event, EventId};
use crate::frame::{Frame, FrameId};
use crate::life::Lives;
use crate::mapping::Mapping;
use crate::meta::Meta;
use crate::process::{Process, ProcessId, Thread, ThreadId};
use crate::registers::RegisterSamples;
use crate::sample::Samples;
use crate::stack::{StackId, Stacks};
use crate::strings::Strings;
use crate::symbol::{Line, Symbols};
use crate::table::{Interned, Table};

/// The data of one recording.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Facts about the recording as a whole.
    pub meta: Meta,
    /// All strings.
    pub strings: Strings,
    /// Sampled events.
    pub events: Table<EventId, Event>,
    /// Files.
    pub dsos: Interned<DsoId, Dso>,
    /// Processes.
    pub processes: Table<ProcessId, Process>,
    /// Threads.
    pub threads: Table<ThreadId, Thread>,
    /// Process lives, sampled or not. Empty if they were not tracked.
    pub lives: Lives,
    /// Mappings of files.
    pub mappings: Vec<Mapping>,
    /// Distinct frames.
    pub frames: Interned<FrameId, Frame>,
    /// Functions and lines of the frames.
    pub symbols: Symbols,
    /// Distinct stacks.
    pub stacks: Stacks,
    /// Samples sorted by time.
    pub samples: Samples,
    /// User registers of some samples. Empty if they were not recorded.
    pub registers: RegisterSamples,
    /// Directory in which this machine has the files of the recorded one, if they are not at their own paths. Not a part of a recording.
    pub symfs: Option<PathBuf>,
}

impl Profile {
    /// Adds a stack of frames ordered from the innermost (leaf) to the outermost (root).
    /// Returns `None` for a stack without frames.
    pub fn add_stack(&mut self, leaf_first: &[FrameId]) -> Option<StackId> {
        leaf_first.iter().rev().fold(None, |caller, &frame| Some(self.stacks.add(caller, frame)))
    }

    /// Returns the frames of a stack from the innermost (leaf) to the outermost (root).
    pub fn frames_of(&self, stack: Option<StackId>) -> impl Iterator<Item = FrameId> {
        self.stacks.walk(stack).map(|node| node.frame)
    }

    /// Whether a frame's address is a real one; that of a function known only by name is an artificial number.
    pub fn has_address(&self, frame: FrameId) -> bool {
        let frame = &self.frames[frame];
        let is_number = |dso: DsoId| self.dsos[dso].addresses == AddressSpace::Line;
        frame.cut().is_none() && !frame.dso.is_some_and(is_number)
    }

    /// Whether a frame belongs to an interpreted program.
    pub fn is_script(&self, frame: FrameId) -> bool {
        self.frames[frame].dso.is_some_and(|dso| self.dsos[dso].kind == DsoKind::Script)
    }

    /// Name of the pseudo-function that replaces the outer frames of an interpreted program that were not read.
    pub const MORE_FRAMES: &str = "[more frames than are read]";

    /// Name of the pseudo-frame between native frames and the script frames for which no native caller was found.
    pub const APART: &str = "[native frames between these are missing]";

    /// Whether a frame replaces outer frames of an interpreted program that were not read ([`Profile::MORE_FRAMES`]).
    pub fn is_more_frames(&self, frame: FrameId) -> bool {
        self.is_script_named(frame, Self::MORE_FRAMES)
    }

    /// Whether a frame separates outer script frames from the native ones that ran them ([`Profile::APART`]).
    pub fn is_apart(&self, frame: FrameId) -> bool {
        self.is_script_named(frame, Self::APART)
    }

    fn is_script_named(&self, frame: FrameId, wanted: &str) -> bool {
        let name = |line: &Line| self.strings.get(self.symbols.functions[line.function].name);
        self.is_script(frame) && self.symbols.of(frame).iter().any(|line| name(line) == wanted)
    }

    /// Whether the stack reaches its root, that is, has no marker for missing frames.
    pub fn is_complete(&self, stack: StackId) -> bool {
        self.frames[self.stacks.root(stack)].cut().is_none()
    }
}
