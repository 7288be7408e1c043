//! What symbolising finds for a frame: its function, and the calls that the compiler inlined into it.

use crate::dso::DsoId;
use crate::frame::{Address, FrameId};
use crate::strings::StringId;
use crate::table::{Id, Interned, id};

id!(
    /// A function.
    FunctionId
);

/// A function of a file, outlined or inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Name for people: demangled. The linkage name where that is mangled and was not demangled yet.
    pub name: StringId,
    /// Name as the linker sees it; empty where only the readable name is known.
    pub linkage_name: StringId,
    /// The file that it is in.
    pub dso: Option<DsoId>,
    /// First address, in the file's address space; `None` for an inlined function.
    pub start: Option<Address>,
    /// Source file of its definition, empty if not known.
    pub source_file: StringId,
    /// Line of its definition in that file, counted from 1; 0 if not known.
    pub start_line: u32,
}

/// A place in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// The function.
    pub function: FunctionId,
    /// Source file of the place (a header's, for code from a header), empty if not known.
    pub file: StringId,
    /// Line in that file, counted from 1; 0 if not known.
    pub line: u32,
    /// Whether this function was inlined into the next line's.
    pub inlined: bool,
}

/// Functions, and for each frame the lines that it stands for.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// Distinct functions.
    pub functions: Interned<FunctionId, Function>,
    lines: Vec<Line>,
    /// Per frame the range of its lines in `lines`.
    ranges: Vec<(u32, u32)>,
}

impl Symbols {
    /// Records what `frame` stands for, innermost inlined call first, the outlined function last. An empty slice
    /// says that nothing was found. Replaces what was there.
    pub fn set(&mut self, frame: FrameId, lines: &[Line]) {
        let start = u32::try_from(self.lines.len()).expect("fewer than 2^32 lines fit in memory");
        if self.ranges.len() <= frame.index() {
            self.ranges.resize(frame.index() + 1, (0, 0));
        }
        self.lines.extend_from_slice(lines);
        self.ranges[frame.index()] = (start, start + lines.len() as u32);
    }

    /// What tells frames recorded so far from those recorded later, for [`Symbols::set_since`].
    pub fn mark(&self) -> usize {
        self.lines.len()
    }

    /// The frames that something was recorded for since `mark` was taken, in order; with 0 all.
    pub fn set_since(&self, mark: usize) -> impl Iterator<Item = FrameId> {
        let ranges = self.ranges.iter().enumerate();
        let is_new = move |&(start, end): &(u32, u32)| start < end && start as usize >= mark;
        ranges.filter(move |(_, range)| is_new(range)).map(|(index, _)| FrameId::from_index(index))
    }

    /// What `frame` stands for, innermost inlined call first; empty if not known.
    pub fn of(&self, frame: FrameId) -> &[Line] {
        match self.recorded(frame) {
            [line] if self.is_nameless(line) => &[],
            lines => lines,
        }
    }

    /// What was recorded for `frame`: as [`of`](Self::of), but a function without a name is there too.
    pub fn recorded(&self, frame: FrameId) -> &[Line] {
        match self.ranges.get(frame.index()) {
            Some(&(start, end)) => &self.lines[start as usize..end as usize],
            None => &[],
        }
    }

    /// Where the function begins that `frame` is in, of which nothing else is known; `None` if that isn't known either, or more is.
    pub fn nameless_start(&self, frame: FrameId) -> Option<Address> {
        match self.recorded(frame) {
            [line] if self.is_nameless(line) => self.functions[line.function].start,
            _ => None,
        }
    }

    fn is_nameless(&self, line: &Line) -> bool {
        self.functions[line.function].name.index() == 0
    }
}
