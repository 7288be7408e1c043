//! A view as a profile of its own, for writers that know nothing of filters.

use plumb_profile::{Id, Profile, Samples, StackId, Stacks};

use crate::view::{View, shown_caller};

impl View<'_> {
    /// The profile with the kept samples only, and without the frames that the view does not show. Ids of threads,
    /// files, frames and functions stay what they were; those of stacks don't.
    pub fn to_profile(&self) -> Profile {
        let source = self.profile();
        let mut profile = source.clone();
        let shown = self.shown_lines();
        for (id, frame) in source.frames.iter() {
            let lines = source.symbols.of(id);
            if frame.cut().is_none() && shown[id.index()].len() < lines.len() {
                let kept: Vec<_> =
                    shown[id.index()].iter().filter_map(|&at| lines.get(at).copied()).collect();
                profile.symbols.set(id, &kept);
            }
        }
        let mut stacks = Stacks::default();
        let mut renumbered: Vec<Option<StackId>> = Vec::with_capacity(source.stacks.len());
        for (_, node) in source.stacks.iter() {
            let caller = shown_caller(source, *node, self.is_native());
            let caller = caller.and_then(|caller| renumbered[caller.index()]);
            let visible = !shown[node.frame.index()].is_empty();
            renumbered.push(if visible { Some(stacks.add(caller, node.frame)) } else { caller });
        }
        let mut samples = Samples::default();
        profile.meta = self.meta().clone();
        let begin = if self.meta().start_ns > source.meta.start_ns { self.meta().start_ns } else { 0 };
        for kept in self.samples() {
            let mut sample = kept.sample;
            // Only the part of an off-CPU time from there on is kept.
            sample.time_ns = sample.time_ns.max(begin);
            sample.stack = sample.stack.and_then(|stack| renumbered[stack.index()]);
            samples.push(sample);
        }
        profile.stacks = stacks;
        profile.samples = samples;
        profile
    }

    /// Per frame of the profile which of its lines are shown; for a frame without lines 0 stands for itself.
    fn shown_lines(&self) -> Vec<Vec<usize>> {
        let mut shown = vec![Vec::new(); self.profile().frames.len()];
        for (_, frame) in self.frames() {
            if let Some(id) = frame.frame {
                shown[id.index()].push(frame.line_index);
            }
        }
        shown
    }
}
