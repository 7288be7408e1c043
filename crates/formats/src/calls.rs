//! What writers show of a frame: the function, and before it what was inlined into it, each by a name.

use std::borrow::Cow;

use plumb_profile::{Frame, FrameId, Profile, StackId};

/// A function's name and place, for people.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Call<'p> {
    /// A marker's is its text in brackets; of a frame without a name it is the address and the file.
    pub name: Cow<'p, str>,
    /// Source file, empty if not known.
    pub file: &'p str,
    /// Line in it, 0 if not known.
    pub line: u32,
    /// Path of the file that the code is in, empty if not known.
    pub dso: &'p str,
    /// Whether it was inlined into the one before.
    pub inlined: bool,
}

/// The calls that a frame stands for, the outermost first.
pub(crate) fn of_frame(profile: &Profile, id: FrameId) -> Vec<Call<'_>> {
    let frame = &profile.frames[id];
    let text = |id| profile.strings.get(id);
    let dso = frame.dso.map_or("", |dso| text(profile.dsos[dso].path));
    let plain = |name: String, dso| vec![Call { name: name.into(), file: "", line: 0, dso, inlined: false }];
    if let Some(cut) = frame.cut() {
        return plain(format!("[{}]", cut.text()), "");
    }
    let lines = profile.symbols.of(id);
    if lines.is_empty() {
        return plain(nameless(frame, dso), dso);
    }
    let call = |line: &plumb_profile::Line| Call {
        name: text(profile.symbols.functions[line.function].name).into(),
        file: text(line.file),
        line: line.line,
        dso,
        inlined: line.inlined,
    };
    lines.iter().rev().map(call).collect()
}

/// The calls of a stack, the outermost first. A stack of which nothing is known is one marker.
pub(crate) fn of_stack(profile: &Profile, stack: Option<StackId>) -> Vec<Call<'_>> {
    let mut frames: Vec<FrameId> = profile.frames_of(stack).collect();
    frames.reverse();
    if frames.is_empty() {
        return vec![Call { name: "[no stack recorded]".into(), file: "", line: 0, dso: "", inlined: false }];
    }
    frames.into_iter().flat_map(|id| of_frame(profile, id)).collect()
}

fn nameless(frame: &Frame, dso: &str) -> String {
    let file = dso.rsplit('/').next().unwrap_or_default();
    format!("{:#x} {file}", frame.address.0).trim_end().to_owned()
}
