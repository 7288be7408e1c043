//! The profile as a whole: its tables side by side.

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

/// Everything that one recording knows.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Facts about the recording as a whole.
    pub meta: Meta,
    /// All text.
    pub strings: Strings,
    /// Sampled events.
    pub events: Table<EventId, Event>,
    /// Files.
    pub dsos: Interned<DsoId, Dso>,
    /// Processes.
    pub processes: Table<ProcessId, Process>,
    /// Threads.
    pub threads: Table<ThreadId, Thread>,
    /// Lives of processes, sampled or not. Empty if nobody kept track of them.
    pub lives: Lives,
    /// Where files were mapped.
    pub mappings: Vec<Mapping>,
    /// Distinct frames.
    pub frames: Interned<FrameId, Frame>,
    /// What the frames are called.
    pub symbols: Symbols,
    /// Distinct stacks.
    pub stacks: Stacks,
    /// The samples in the order of their time.
    pub samples: Samples,
    /// User registers of some of them. Empty if they were not recorded.
    pub registers: RegisterSamples,
}

impl Profile {
    /// Adds a stack of frames given from the innermost (leaf) to the outermost (root).
    /// Returns `None` for a stack without frames.
    pub fn add_stack(&mut self, leaf_first: &[FrameId]) -> Option<StackId> {
        leaf_first.iter().rev().fold(None, |caller, &frame| Some(self.stacks.add(caller, frame)))
    }

    /// The frames of a stack from the innermost (leaf) to the outermost (root).
    pub fn frames_of(&self, stack: Option<StackId>) -> impl Iterator<Item = FrameId> {
        self.stacks.walk(stack).map(|node| node.frame)
    }

    /// Whether the address of a frame is one: that of a function which is only told by name is a number of its own.
    pub fn has_address(&self, frame: FrameId) -> bool {
        let frame = &self.frames[frame];
        let is_number = |dso: DsoId| self.dsos[dso].addresses == AddressSpace::Line;
        frame.cut().is_none() && !frame.dso.is_some_and(is_number)
    }

    /// Whether a frame is of an interpreted program.
    pub fn is_script(&self, frame: FrameId) -> bool {
        self.frames[frame].dso.is_some_and(|dso| self.dsos[dso].kind == DsoKind::Script)
    }

    /// What stands, as a function of an interpreted program, for its frames further out that were not read.
    pub const MORE_FRAMES: &str = "[more frames than are read]";

    /// What stands between native frames and frames of an interpreted program that none of those was found to run.
    pub const APART: &str = "[native frames between these are missing]";

    /// Whether a frame stands for further ones of an interpreted program, which were not read ([`Profile::MORE_FRAMES`]).
    pub fn is_more_frames(&self, frame: FrameId) -> bool {
        self.is_script_named(frame, Self::MORE_FRAMES)
    }

    /// Whether frames of an interpreted program that are further out are apart from the native ones that ran them ([`Profile::APART`]).
    pub fn is_apart(&self, frame: FrameId) -> bool {
        self.is_script_named(frame, Self::APART)
    }

    fn is_script_named(&self, frame: FrameId, wanted: &str) -> bool {
        let name = |line: &Line| self.strings.get(self.symbols.functions[line.function].name);
        self.is_script(frame) && self.symbols.of(frame).iter().any(|line| name(line) == wanted)
    }

    /// Whether the stack reaches its root, that is, has no marker saying that frames are missing.
    pub fn is_complete(&self, stack: StackId) -> bool {
        self.frames[self.stacks.root(stack)].cut().is_none()
    }
}
