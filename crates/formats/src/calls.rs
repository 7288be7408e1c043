//! What writers show of a frame: the function, and before it what was inlined into it, each by a name.

use std::borrow::Cow;

use plumb_profile::{FrameId, Profile, StackId, UnnamedFunctions};

/// A function's name and place, for people.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Call<'p> {
    /// A marker's is its text in brackets; of a function without a symbol it is its file and where it begins.
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

/// The calls of a profile's frames and stacks.
pub(crate) struct Calls<'p> {
    profile: &'p Profile,
    unnamed: UnnamedFunctions,
}

impl<'p> Calls<'p> {
    pub fn of(profile: &'p Profile) -> Self {
        Self { profile, unnamed: UnnamedFunctions::of(profile) }
    }

    /// The calls that a frame stands for, the outermost first.
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

    /// The calls of a stack, the outermost first. A stack of which nothing is known is one marker.
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
