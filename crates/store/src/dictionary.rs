//! Strings, frames and stacks, each once: what samples point at.
//!
//! Ids are places in the order of arrival and never change, so what was computed for the first `n` stays true when more come. A caller's node comes
//! before those that it calls.

use std::collections::HashMap;
use std::convert::Infallible;

use foldhash::fast::RandomState;
use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

use crate::resolved::{FrameNames, ResolvedCall};

/// A string's place in a [`Dictionary`]; 0 is the empty one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TextId(pub(crate) u32);

/// A stack's place in a [`Dictionary`]: its innermost frame with all that called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StackNodeId(pub(crate) u32);

impl StackNodeId {
    /// Returns the index in [`Dictionary::nodes`].
    pub fn place(self) -> usize {
        self.0 as usize
    }
}

/// A frame's place in a [`Dictionary`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FrameKey(pub(crate) u32);

/// One frame as it was sent: with names, or with a file's build id and an address in it for which names may come later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StoredFrame {
    /// The function's readable name; empty if unknown. With an address: a provisional name, until the file's symbols give the name.
    pub function: TextId,
    /// The mangled name, if it differs.
    pub system_name: TextId,
    /// The source file.
    pub file: TextId,
    /// The line in it; 0 if it isn't known.
    pub line: u32,
    /// The line where the function begins; 0 if it isn't known.
    pub start_line: u32,
    /// The mapped file.
    pub mapping: TextId,
    /// The file's build ID in hexadecimal digits.
    pub build_id: TextId,
    /// The address in the file as its headers count; 0 for a frame with a final name, because addresses would keep equal stacks apart.
    pub address: u64,
    /// The address is a file offset instead, as in pprof profiles that contain the mappings.
    pub is_file_offset: bool,
    /// The compiler put the function into its caller.
    pub inlined: bool,
}

impl StoredFrame {
    /// Whether its file may tell a name.
    pub(crate) fn is_nameless(&self) -> bool {
        self.function == TextId::default() || self.address != 0
    }

    /// Replaces the ids of its strings, for another dictionary.
    pub(crate) fn with_texts(self, mut text: impl FnMut(TextId) -> TextId) -> Self {
        Self {
            function: text(self.function),
            system_name: text(self.system_name),
            file: text(self.file),
            mapping: text(self.mapping),
            build_id: text(self.build_id),
            ..self
        }
    }
}

/// A frame that a frame called, or the outermost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StackFrames {
    /// The caller's node; `None` for the outermost frame.
    pub caller: Option<StackNodeId>,
    /// The frame.
    pub frame: FrameKey,
}

/// Strings, frames and stacks, each once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Dictionary {
    texts: IndexSet<Box<str>, RandomState>,
    frames: IndexSet<StoredFrame, RandomState>,
    nodes: IndexSet<StackFrames, RandomState>,
    /// Bytes of the strings. 0 after reading from the log: a batch read from there only moves into a head.
    #[serde(skip)]
    text_bytes: usize,
}

impl Default for Dictionary {
    fn default() -> Self {
        let mut texts = IndexSet::default();
        texts.insert(Box::default());
        Self { texts, frames: IndexSet::default(), nodes: IndexSet::default(), text_bytes: 0 }
    }
}

fn id(place: usize) -> u32 {
    // 4 billion of anything take more memory than any limit on a batch or a head allows.
    u32::try_from(place).unwrap_or(u32::MAX)
}

impl Dictionary {
    /// The id of a string.
    pub fn text(&mut self, text: &str) -> TextId {
        if let Some(place) = self.texts.get_index_of(text) {
            return TextId(id(place));
        }
        self.text_bytes += text.len();
        TextId(id(self.texts.insert_full(text.into()).0))
    }

    /// The id of a frame whose strings are in this dictionary.
    pub fn frame(&mut self, frame: StoredFrame) -> FrameKey {
        FrameKey(id(self.frames.insert_full(frame).0))
    }

    /// The id of the stack that a frame makes on top of its caller.
    pub fn call(&mut self, caller: Option<StackNodeId>, frame: FrameKey) -> StackNodeId {
        StackNodeId(id(self.nodes.insert_full(StackFrames { caller, frame }).0))
    }

    /// The id of a stack, outermost frame first; `None` if it has no frame.
    pub fn stack(&mut self, root_first: impl IntoIterator<Item = FrameKey>) -> Option<StackNodeId> {
        root_first.into_iter().fold(None, |caller, frame| Some(self.call(caller, frame)))
    }

    /// A string.
    pub fn resolve(&self, text: TextId) -> &str {
        self.texts.get_index(text.0 as usize).map_or("", |text| text)
    }

    /// A frame.
    pub fn frame_at(&self, frame: FrameKey) -> StoredFrame {
        self.frames.get_index(frame.0 as usize).copied().unwrap_or_default()
    }

    /// A node of the tree of stacks.
    pub fn node(&self, node: StackNodeId) -> StackFrames {
        self.nodes[node.0 as usize]
    }

    /// The frames of a stack, innermost first.
    pub fn frames_of(&self, node: StackNodeId) -> impl Iterator<Item = FrameKey> {
        let up = |node: &StackFrames| node.caller.map(|caller| self.node(caller));
        std::iter::successors(Some(self.node(node)), up).map(|node| node.frame)
    }

    /// Adds the nodes of a stack that are not in `known`, innermost first, to `path`. Returns the value of the first caller that is.
    pub(crate) fn path_to_known<T: Copy>(
        &self,
        stack: StackNodeId,
        known: &HashMap<StackNodeId, T, RandomState>,
        path: &mut Vec<StackNodeId>,
    ) -> Option<T> {
        let mut at = Some(stack);
        while let Some(node) = at {
            if let Some(&value) = known.get(&node) {
                return Some(value);
            }
            path.push(node);
            at = self.node(node).caller;
        }
        None
    }

    /// All strings, by id.
    pub(crate) fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }

    /// All frames, by id.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = &StoredFrame> {
        self.frames.iter()
    }

    /// All nodes of the tree of stacks, by id.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &StackFrames> {
        self.nodes.iter()
    }

    /// Number of frames of the stack of each node.
    pub(crate) fn depths(&self) -> Vec<u32> {
        let mut depths: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let above = node.caller.map_or(0, |caller| depths[caller.0 as usize]);
            depths.push(above + 1);
        }
        depths
    }

    /// Numbers of texts, frames and nodes, and the bytes of texts.
    pub(crate) fn lengths(&self) -> [usize; 4] {
        [self.texts.len(), self.frames.len(), self.nodes.len(), self.text_bytes]
    }

    /// Removes all that was added since there were these numbers.
    pub(crate) fn truncate(&mut self, [texts, frames, nodes, text_bytes]: [usize; 4]) {
        self.texts.truncate(texts);
        self.frames.truncate(frames);
        self.nodes.truncate(nodes);
        self.text_bytes = text_bytes;
    }

    /// Memory, roughly, in bytes.
    pub(crate) fn memory(&self) -> usize {
        let texts: usize = self.texts.len() * 40 + self.text_bytes;
        texts + self.frames.len() * 64 + self.nodes.len() * 32
    }

    /// Takes in what another has; says where each of its nodes is now.
    pub(crate) fn absorb(&mut self, other: &Dictionary) -> Vec<StackNodeId> {
        let Ok(nodes) = self.absorb_named(other, &FrameNames::new(), || Ok::<(), Infallible>(()));
        nodes
    }

    /// Takes in what another has, some of its frames as the calls that they really are; says where each of its nodes is now.
    /// `go_on` is asked for each frame and node, and its error ends this early.
    pub(crate) fn absorb_named<E>(
        &mut self,
        other: &Dictionary,
        names: &FrameNames,
        go_on: impl Fn() -> Result<(), E>,
    ) -> Result<Vec<StackNodeId>, E> {
        let texts: Vec<TextId> = other.texts().map(|text| self.text(text)).collect();
        let text = |id: TextId| texts.get(id.0 as usize).copied().unwrap_or_default();
        let moved = |frame: StoredFrame| frame.with_texts(text);
        let mut frames: Vec<FrameKey> = Vec::with_capacity(other.frames.len());
        let mut inlined: HashMap<usize, Vec<FrameKey>> = HashMap::new();
        for (place, &frame) in other.frames().enumerate() {
            go_on()?;
            let calls = u32::try_from(place).ok().and_then(|place| names.get(&place));
            match calls.and_then(|calls| calls.split_last()) {
                None => frames.push(self.frame(moved(frame))),
                Some((last, outer)) => {
                    let outer = outer.iter().map(|call| self.named_frame(moved(frame), call)).collect();
                    inlined.insert(place, outer);
                    frames.push(self.named_frame(moved(frame), last));
                }
            }
        }
        let mut nodes: Vec<StackNodeId> = Vec::with_capacity(other.nodes.len());
        for node in other.nodes() {
            go_on()?;
            let mut caller = node.caller.map(|caller| nodes[caller.0 as usize]);
            let frame = node.frame.0 as usize;
            for &outer in inlined.get(&frame).into_iter().flatten() {
                caller = Some(self.call(caller, outer));
            }
            nodes.push(self.call(caller, frames[frame]));
        }
        Ok(nodes)
    }

    /// Takes in some stacks of another, named as by [`Self::absorb_named`]; says where each of their nodes is now.
    pub(crate) fn absorb_stacks<E>(
        &mut self,
        other: &Dictionary,
        stacks: impl Iterator<Item = StackNodeId>,
        names: &FrameNames,
        go_on: impl Fn() -> Result<(), E>,
    ) -> Result<HashMap<StackNodeId, StackNodeId, RandomState>, E> {
        let mut known: HashMap<StackNodeId, StackNodeId, RandomState> = HashMap::default();
        let mut frames: HashMap<FrameKey, Vec<FrameKey>, RandomState> = HashMap::default();
        let mut path = Vec::new();
        for stack in stacks {
            let mut caller = other.path_to_known(stack, &known, &mut path);
            for node in path.drain(..).rev() {
                go_on()?;
                let frame = other.node(node).frame;
                let calls = frames.entry(frame).or_insert_with(|| self.moved_frame(other, frame, names));
                for &call in &*calls {
                    caller = Some(self.call(caller, call));
                }
                known.extend(caller.map(|caller| (node, caller)));
            }
        }
        Ok(known)
    }

    /// Takes in frames of another as the calls that they really are, outermost first. Returns the calls of all, and where those of each end.
    pub(crate) fn absorb_frames(
        &mut self,
        other: &Dictionary,
        frames: &[FrameKey],
        names: &FrameNames,
    ) -> (Vec<FrameKey>, Vec<usize>) {
        let (mut keys, mut ends) = (Vec::with_capacity(frames.len()), Vec::with_capacity(frames.len()));
        for &frame in frames {
            keys.extend(self.moved_frame(other, frame, names));
            ends.push(keys.len());
        }
        (keys, ends)
    }

    /// A frame of another as the calls that it really is, outermost first.
    fn moved_frame(&mut self, other: &Dictionary, frame: FrameKey, names: &FrameNames) -> Vec<FrameKey> {
        let calls = names.get(&frame.0).map_or(&[][..], |calls| calls);
        let frame = other.frame_at(frame);
        let moved = frame.with_texts(|id| self.text(other.resolve(id)));
        match calls {
            [] => vec![self.frame(moved)],
            calls => calls.iter().map(|call| self.named_frame(moved, call)).collect(),
        }
    }

    /// A frame with the name of a call instead of its address.
    fn named_frame(&mut self, frame: StoredFrame, call: &ResolvedCall) -> FrameKey {
        let function = self.text(&call.function);
        let (system_name, file) = (self.text(&call.system_name), self.text(&call.file));
        let (line, start_line, inlined) = (call.line, call.start_line, call.inlined);
        self.frame(StoredFrame {
            function,
            system_name,
            file,
            line,
            start_line,
            inlined,
            address: 0,
            is_file_offset: false,
            ..frame
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn stack(dictionary: &mut Dictionary, names: &[&str]) -> StackNodeId {
        let frames: Vec<FrameKey> = names
            .iter()
            .map(|name| {
                let function = dictionary.text(name);
                dictionary.frame(StoredFrame { function, ..StoredFrame::default() })
            })
            .collect();
        dictionary.stack(frames).unwrap()
    }

    fn names(dictionary: &Dictionary, node: StackNodeId) -> Vec<&str> {
        dictionary
            .frames_of(node)
            .map(|frame| dictionary.resolve(dictionary.frame_at(frame).function))
            .collect()
    }

    #[test]
    fn equal_stacks_are_one_also_across_dictionaries() {
        let (mut one, mut other) = (Dictionary::default(), Dictionary::default());
        let first = stack(&mut one, &["main", "a", "b"]);
        assert_eq!(stack(&mut one, &["main", "a", "b"]), first);
        stack(&mut other, &["start", "x"]);
        let same = stack(&mut other, &["main", "a", "b"]);
        let moved = one.absorb(&other);
        assert_eq!(moved[same.0 as usize], first);
        assert_eq!(names(&one, moved[1]), ["x", "start"]);
        assert_eq!(one.nodes().len(), 5);
    }

    #[test]
    fn survives_its_bytes() {
        let mut one = Dictionary::default();
        let node = stack(&mut one, &["main", "a"]);
        let bytes = postcard::to_stdvec(&one).unwrap();
        let read: Dictionary = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(names(&read, node), ["a", "main"]);
    }
}
