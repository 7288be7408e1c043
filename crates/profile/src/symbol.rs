//! The results of symbolization for a frame: its function, and the calls that the compiler inlined into it.

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
    /// Demangled name. The linkage name if that was not demangled yet.
    pub name: StringId,
    /// Linkage name; empty if only the readable name is known.
    pub linkage_name: StringId,
    /// The file with its code.
    pub dso: Option<DsoId>,
    /// First address, in the file's address space; `None` for an inlined function.
    pub start: Option<Address>,
    /// Source file of the definition, empty if not known.
    pub source_file: StringId,
    /// Line of the definition in that file, counted from 1; 0 if not known.
    pub start_line: u32,
}

/// A source location in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// The function.
    pub function: FunctionId,
    /// Source file of the location (a header's, for code from a header), empty if not known.
    pub file: StringId,
    /// Line in that file, counted from 1; 0 if not known.
    pub line: u32,
    /// Whether this function was inlined into the next line's.
    pub inlined: bool,
}

/// Functions, and the source locations of each frame.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// Distinct functions.
    pub functions: Interned<FunctionId, Function>,
    lines: Vec<Line>,
    /// For each frame the range of its locations in `lines`.
    ranges: Vec<(u32, u32)>,
}

impl Symbols {
    /// Sets the locations of `frame`, innermost inlined call first, the outlined function last. An empty slice
    /// means that nothing was found. Replaces earlier locations.
    pub fn set(&mut self, frame: FrameId, lines: &[Line]) {
        let start = u32::try_from(self.lines.len()).expect("fewer than 2^32 lines fit in memory");
        if self.ranges.len() <= frame.index() {
            self.ranges.resize(frame.index() + 1, (0, 0));
        }
        self.lines.extend_from_slice(lines);
        self.ranges[frame.index()] = (start, start + lines.len() as u32);
    }

    /// Returns a mark that separates frames set so far from those set later, for [`Symbols::set_since`].
    pub fn mark(&self) -> usize {
        self.lines.len()
    }

    /// Returns the frames set since `mark` was taken, in order; all for 0.
    pub fn set_since(&self, mark: usize) -> impl Iterator<Item = FrameId> {
        let ranges = self.ranges.iter().enumerate();
        let is_new = move |&(start, end): &(u32, u32)| start < end && start as usize >= mark;
        ranges.filter(move |(_, range)| is_new(range)).map(|(index, _)| FrameId::from_index(index))
    }

    /// Returns the locations of `frame`, innermost inlined call first; empty if not known.
    pub fn of(&self, frame: FrameId) -> &[Line] {
        match self.recorded(frame) {
            [line] if self.is_nameless(line) => &[],
            lines => lines,
        }
    }

    /// Returns what was set for `frame`: as [`of`](Self::of), but including a function without a name.
    pub fn recorded(&self, frame: FrameId) -> &[Line] {
        match self.ranges.get(frame.index()) {
            Some(&(start, end)) => &self.lines[start as usize..end as usize],
            None => &[],
        }
    }

    /// Returns the start of the function of `frame` if that is all that is known of it; otherwise `None`.
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
