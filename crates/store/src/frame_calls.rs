//! The names that a frame is shown with: its own, those that its file tells, or where its code is.

use crate::block::{CallStacks, FrameName};
use crate::dictionary::{Dictionary, FrameKey, StoredFrame};
use crate::resolved::FrameNames;

/// Calls that a frame is shown as, by the ids of their names.
pub(crate) enum FrameCalls {
    One(u32),
    /// Inlined functions, outermost first.
    Inlined(Box<[u32]>),
}

impl FrameCalls {
    /// Names of the calls, outermost first.
    pub fn names(&self) -> &[u32] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Inlined(names) => names,
        }
    }
}

/// Calls that each frame of a block is shown as. `ids`: of the block's texts; `id`: the id of another name; `names`: of nameless frames.
pub(crate) fn block_frames(
    block: &CallStacks,
    names: &FrameNames,
    ids: &[u32],
    id: &mut impl FnMut(&str) -> u32,
) -> Vec<FrameCalls> {
    let mut frame = |name: &FrameName| match *name {
        FrameName::Known(text) => FrameCalls::One(ids[text as usize]),
        FrameName::Missing(key) => frame_of(&block.nameless, key, names, id),
    };
    block.names.iter().map(&mut frame).collect()
}

/// Calls that a frame of a dictionary is shown as. `id`: the id of a name; `names`: of nameless frames.
pub(crate) fn frame_of(
    dictionary: &Dictionary,
    frame: FrameKey,
    names: &FrameNames,
    id: &mut impl FnMut(&str) -> u32,
) -> FrameCalls {
    match names.get(&frame.0).filter(|calls| !calls.is_empty()) {
        Some(calls) => FrameCalls::Inlined(calls.iter().map(|call| id(&call.function)).collect()),
        None => FrameCalls::One(id(&shown_name(dictionary, dictionary.frame_at(frame)))),
    }
}

/// Displayed name of a frame.
pub(crate) fn shown_name(dictionary: &Dictionary, frame: StoredFrame) -> String {
    let function = dictionary.resolve(frame.function);
    if !function.is_empty() {
        return function.to_owned();
    }
    let mapping = dictionary.resolve(frame.mapping);
    let file = mapping.rsplit('/').next().unwrap_or(mapping);
    match file {
        "" => format!("{:#x}", frame.address),
        file => format!("{file}+{:#x}", frame.address),
    }
}
