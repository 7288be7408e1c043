//! Locations of pprof and OTLP: an address with the functions there become frames.

use plumb_profile::unnamed_function_start;
use plumb_store::{Dictionary, FrameKey, StoredFrame, TextId};

/// A line of a location: where in which function.
pub(super) struct LocationLine {
    /// `None` where no function is named.
    pub function: Option<LineFunction>,
    pub line: i64,
}

/// A function that a line is in.
pub(super) struct LineFunction {
    pub name: TextId,
    pub system_name: TextId,
    pub file: TextId,
    pub start_line: i64,
}

/// The frames of a location, outermost first. `lines` are innermost first: all but the last were inlined into the next. A frame with a name keeps no
/// address, because that would keep equal stacks apart, unless the name says no more than where the function begins: its file may come and tell.
/// A location without lines is the frame `file`.
pub(super) fn frames(
    dictionary: &mut Dictionary,
    file: StoredFrame,
    lines: &[LocationLine],
) -> Vec<FrameKey> {
    if lines.is_empty() {
        return vec![dictionary.frame(file)];
    }
    let frame = |(depth, line): (usize, &LocationLine)| {
        let mut frame = file;
        if let Some(function) = &line.function {
            frame.function = function.name;
            let is_other = function.system_name != function.name;
            frame.system_name = if is_other { function.system_name } else { TextId::default() };
            frame.file = function.file;
            frame.start_line = u32::try_from(function.start_line).unwrap_or(0);
        }
        frame.line = u32::try_from(line.line).unwrap_or(0);
        frame.inlined = depth + 1 < lines.len();
        let is_named = !(lines.len() == 1 && is_unnamed(dictionary, &frame));
        if frame.function != TextId::default() && is_named {
            frame.address = 0;
            frame.is_file_offset = false;
        }
        dictionary.frame(frame)
    };
    lines.iter().enumerate().rev().map(frame).collect()
}

/// Whether a function of a file that can be told from others is named by its file and where it begins, which plumb does where no symbol is known.
fn is_unnamed(dictionary: &Dictionary, frame: &StoredFrame) -> bool {
    let [name, path] = [frame.function, frame.mapping].map(|text| dictionary.resolve(text));
    frame.build_id != TextId::default() && unnamed_function_start(name, path).is_some()
}
