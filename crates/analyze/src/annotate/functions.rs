//! The functions that can be annotated: those sampled in their own code, and their callers.

use std::collections::HashMap;
use std::ops::Range;

use plumb_profile::{Address, DsoId, FrameId, FrameKind, Profile, unnamed_function_name};

use super::{Landing, stacks};
use crate::cost::Cost;
use crate::pattern::Pattern;
use crate::view::View;

/// A function of a file, with the calls inlined into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledFunction {
    /// Name of the function.
    pub name: String,
    /// File with its code.
    pub dso: DsoId,
    /// Path of the file.
    pub path: String,
    /// First address. `None` if no symbol gives the start of the function.
    pub start: Option<Address>,
    /// One of its addresses on a sampled stack.
    pub address: Address,
    /// Address range, if that and not a symbol decides which frames belong to the function.
    pub extent: Option<Range<Address>>,
    /// Samples in its own code.
    pub own: Cost,
    /// Functions inlined into it that the pattern matches; empty if the pattern matches the function itself.
    pub inlined: Vec<String>,
}

impl SampledFunction {
    /// Whether a frame is in this function.
    pub(crate) fn has(&self, profile: &Profile, frame: FrameId) -> bool {
        if let Some(extent) = &self.extent {
            let frame = profile.frames[frame];
            return frame.dso == Some(self.dso) && extent.contains(&frame.lookup());
        }
        key(profile, frame).is_some_and(|key| self.dso == key.0 && self.start.map(|start| start.0) == key.1)
    }
}

/// A file and the start address of a function in it.
type Key = (DsoId, Option<u64>);

fn key(profile: &Profile, frame: FrameId) -> Option<Key> {
    let dso = profile.frames[frame].dso?;
    let line = profile.symbols.of(frame).last()?;
    Some((dso, profile.symbols.functions[line.function].start.map(|start| start.0)))
}

/// Returns a file's code in an address range as a function without a symbol. `None` if no sampled stack contains any of it.
pub fn sampled_within(view: &View<'_>, dso: DsoId, extent: Range<Address>) -> Option<SampledFunction> {
    let profile = view.profile();
    let path = profile.strings.get(profile.dsos[dso].path);
    let mut function = SampledFunction {
        name: unnamed_function_name(path, extent.start.0),
        dso,
        path: path.to_owned(),
        start: Some(extent.start),
        address: extent.start,
        extent: Some(extent),
        own: Cost::default(),
        inlined: Vec::new(),
    };
    let mut is_sampled = false;
    for (stack, cost) in stacks(view) {
        let landing = Landing::of(profile, &function, stack);
        is_sampled |= landing.own.is_some() || !landing.callers.is_empty();
        if landing.own.is_some() {
            function.own += cost;
        }
    }
    is_sampled.then_some(function)
}

/// Returns the files with code on sampled stacks, restricted to those that `module` matches if it is given.
pub fn sampled_files(view: &View<'_>, module: Option<&Pattern>) -> Vec<DsoId> {
    let profile = view.profile();
    let of_stack = |(stack, _): (_, Cost)| profile.frames_of(Some(stack)).collect::<Vec<FrameId>>();
    let frames = stacks(view).into_iter().flat_map(of_stack).filter(|frame| !profile.is_script(*frame));
    let mut files: Vec<DsoId> = frames.filter_map(|frame| profile.frames[frame].dso).collect();
    files.sort_unstable();
    files.dedup();
    let path = |file: &DsoId| profile.strings.get(profile.dsos[*file].path);
    files.retain(|file| module.is_none_or(|module| module.matches_path(path(file))));
    files
}

/// Returns the own cost of each frame of machine code; `with_callers` includes frames without any.
fn own_costs(view: &View<'_>, with_callers: bool) -> HashMap<FrameId, Cost> {
    let profile = view.profile();
    let mut costs: HashMap<FrameId, Cost> = HashMap::new();
    for (stack, cost) in stacks(view) {
        let code = |frame: &FrameId| {
            !profile.is_script(*frame) && !matches!(profile.frames[*frame].kind, FrameKind::Truncation(_))
        };
        let mut frames = profile.frames_of(Some(stack)).filter(code);
        if let Some(frame) = frames.next() {
            *costs.entry(frame).or_default() += cost;
        }
        if with_callers {
            frames.for_each(|frame| _ = costs.entry(frame).or_default());
        }
    }
    costs
}

/// Returns the functions on sampled stacks whose name, or the name of a function inlined into them, matches `function` and whose file
/// matches `module`, most expensive first. Without `function`: all with samples in their own code.
pub fn sampled(
    view: &View<'_>,
    function: Option<&Pattern>,
    module: Option<&Pattern>,
) -> Vec<SampledFunction> {
    let profile = view.profile();
    let mut found: HashMap<Key, SampledFunction> = HashMap::new();
    let mut inlined: HashMap<Key, Vec<String>> = HashMap::new();
    for (frame, cost) in own_costs(view, function.is_some()) {
        let Some(key) = key(profile, frame) else { continue };
        let path = profile.strings.get(profile.dsos[key.0].path);
        if module.is_some_and(|module| !module.matches_path(path)) {
            continue;
        }
        let names = |line: &plumb_profile::Line| {
            let name = profile.strings.get(profile.symbols.functions[line.function].name);
            function.is_none_or(|function| function.matches_function(name)).then(|| name.to_owned())
        };
        let Some((outlined, inner)) = profile.symbols.of(frame).split_last() else { continue };
        let entry = found.entry(key).or_insert_with(|| SampledFunction {
            name: profile.strings.get(profile.symbols.functions[outlined.function].name).to_owned(),
            dso: key.0,
            path: path.to_owned(),
            start: key.1.map(Address),
            address: profile.frames[frame].lookup(),
            extent: None,
            own: Cost::default(),
            inlined: Vec::new(),
        });
        entry.own += cost;
        if function.is_some() {
            inlined.entry(key).or_default().extend(inner.iter().filter_map(names));
        }
    }
    let mut functions: Vec<SampledFunction> = found
        .into_iter()
        .filter_map(|(key, mut sampled)| {
            if function.is_none_or(|function| function.matches_function(&sampled.name)) {
                return Some(sampled);
            }
            sampled.inlined = inlined.remove(&key).unwrap_or_default();
            sampled.inlined.sort_unstable();
            sampled.inlined.dedup();
            (!sampled.inlined.is_empty()).then_some(sampled)
        })
        .collect();
    functions.sort_by(|a, b| {
        let order =
            |f: &SampledFunction| (f.inlined.len().min(1), std::cmp::Reverse(f.own.weight), f.dso, f.start);
        order(a).cmp(&order(b))
    });
    functions
}
