//! Calls as writers show them: the function of a frame and the calls inlined into it, each by name.

use std::borrow::Cow;

use plumb_profile::{FrameId, Profile, StackId, UnnamedFunctions};

/// A function's name and source location, for people.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Call<'p> {
    /// Name; for a marker its text in brackets, for a function without a symbol its file and start.
    pub name: Cow<'p, str>,
    /// Source file, empty if not known.
    pub file: &'p str,
    /// Source line, 0 if not known.
    pub line: u32,
    /// Path of the file with the code, empty if not known.
    pub dso: &'p str,
    /// Whether it was inlined into the previous one.
    pub inlined: bool,
}

/// The calls of a profile's frames and stacks.
pub(crate) struct Calls<'p> {
    profile: &'p Profile,
    unnamed: UnnamedFunctions,
}

impl<'p> Calls<'p> {
    pub fn of(profile: &'p Profile) -> Self {
        Self { profile, unnamed: UnnamedFunctions::of(profile) }
    }

    /// Returns the calls of a frame, outermost first.
    pub fn of_frame(&self, id: FrameId) -> Vec<Call<'p>> {
        let profile = self.profile;
        let frame = &profile.frames[id];
        let text = |id| profile.strings.get(id);
        let dso = frame.dso.map_or("", |dso| text(profile.dsos[dso].path));
        let plain =
            |name: String, dso| vec![Call { name: name.into(), file: "", line: 0, dso, inlined: false }];
        if let Some(cut) = frame.cut() {
            return plain(format!("[{}]", cut.text()), "");
        }
        let lines = profile.symbols.of(id);
        if lines.is_empty() {
            return plain(self.unnamed.find(profile, id).name(profile), dso);
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

    /// Returns the calls of a stack, outermost first. An unknown stack is one marker.
    pub fn of_stack(&self, stack: Option<StackId>) -> Vec<Call<'p>> {
        let mut frames: Vec<FrameId> = self.profile.frames_of(stack).collect();
        frames.reverse();
        if frames.is_empty() {
            return vec![Call {
                name: "[no stack recorded]".into(),
                file: "",
                line: 0,
                dso: "",
                inlined: false,
            }];
        }
        frames.into_iter().flat_map(|id| self.of_frame(id)).collect()
    }
}
