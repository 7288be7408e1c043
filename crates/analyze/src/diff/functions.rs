//! Which frames of several recordings are the same function, though the program was built again in between.
//!
//! The same is what has the same folded name in the same module; where that is several functions in any recording (static ones of one
//! name), those with the same source file. Addresses without a symbol are one function a module: they say nothing in another build.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use super::name::{folded, is_library, last_part, module};
use super::rows::Spot;
use super::sum::Sum;
use crate::frame::{FrameIndex, Kind, ViewFrame};
use crate::view::View;

/// A function of either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffFunction {
    /// Its name, as the last recording that has it writes it, without what compilers add to copies.
    pub name: String,
    /// Path of the file that its code is in; empty if there is none.
    pub dso: String,
    /// Source file, empty if not known.
    pub source: String,
    /// User code, kernel code or a marker.
    pub kind: Kind,
}

/// What all frames of one function have in common.
type Key = (Kind, String, String);

/// The functions of several views.
pub(super) struct Functions {
    pub names: Vec<DiffFunction>,
    /// Per view and frame.
    of: Vec<Vec<u32>>,
}

impl Functions {
    /// Of all views, of which `base` are the base's, with what they cost.
    pub fn new(views: &[&View<'_>], spots: &[Vec<(Spot, Sum)>], base: usize) -> Self {
        let renamed = renamed(views, spots, base);
        let keys: Vec<Vec<Key>> = views
            .iter()
            .map(|view| view.frames().map(|(_, frame)| key(frame, renamed.as_ref())).collect())
            .collect();
        let several = several(views, &keys);
        let mut functions = Functions { names: Vec::new(), of: Vec::new() };
        let mut numbers: HashMap<(&Key, &str), u32> = HashMap::new();
        for (view, keys) in views.iter().zip(&keys) {
            let mut of = Vec::with_capacity(keys.len());
            for ((_, frame), key) in view.frames().zip(keys) {
                let source = source(view, frame);
                let apart = if several.contains(key) { last_part(source) } else { "" };
                let next = functions.names.len() as u32;
                let number = *numbers.entry((key, apart)).or_insert(next);
                let name = named(key, frame, source);
                match functions.names.get_mut(number as usize) {
                    Some(known) => known.learn(name),
                    None => functions.names.push(name),
                }
                of.push(number);
            }
            functions.of.push(of);
        }
        functions
    }

    /// The function of a frame of a view, counted over both sides.
    pub fn of(&self, view: usize, frame: FrameIndex) -> u32 {
        self.of[view][frame.0 as usize]
    }
}

impl DiffFunction {
    /// Takes what a later recording says of it.
    fn learn(&mut self, later: DiffFunction) {
        let source = std::mem::take(&mut self.source);
        *self = later;
        if self.source.is_empty() {
            self.source = source;
        }
    }
}

fn named(key: &Key, frame: &ViewFrame<'_>, source: &str) -> DiffFunction {
    DiffFunction {
        name: key.2.clone(),
        dso: frame.dso_path.to_owned(),
        source: source.to_owned(),
        kind: frame.kind,
    }
}

fn key(frame: &ViewFrame<'_>, renamed: Option<&(String, String)>) -> Key {
    let mut module = module(frame.dso_path);
    if let Some((old, new)) = renamed
        && module == new
    {
        module = old;
    }
    let name = match frame.kind {
        Kind::Marker => frame.name.to_string(),
        _ if frame.named => folded(&frame.name),
        _ if frame.dso_path.is_empty() => "[no file, no symbol]".to_owned(),
        _ => format!("[no symbol in {}]", last_part(frame.dso_path)),
    };
    let module = if frame.kind == Kind::Marker { "" } else { module };
    (frame.kind, module.to_owned(), name)
}

/// The source file that a frame's function is defined in.
fn source<'p>(view: &View<'p>, frame: &ViewFrame<'p>) -> &'p str {
    let profile = view.profile();
    let function = frame.function.map(|id| profile.symbols.functions[id]);
    function.map_or("", |function| profile.strings.get(function.source_file))
}

/// Names that several functions of one recording have, in different source files.
fn several<'k>(views: &[&View<'_>], keys: &'k [Vec<Key>]) -> BTreeSet<&'k Key> {
    let mut several = BTreeSet::new();
    for (view, keys) in views.iter().zip(keys) {
        let mut sources: HashMap<&Key, &str> = HashMap::new();
        for ((_, frame), key) in view.frames().zip(keys) {
            let source = last_part(source(view, frame));
            if !source.is_empty() && *sources.entry(key).or_insert(source) != source {
                several.insert(key);
            }
        }
    }
    several
}

/// The program that costs most in the base, and the one that does in the new side, if neither is in the other: its name was changed.
fn renamed(views: &[&View<'_>], spots: &[Vec<(Spot, Sum)>], base: usize) -> Option<(String, String)> {
    let programs = |range: Range<usize>| {
        let mut costs: BTreeMap<&str, f64> = BTreeMap::new();
        for (view, spots) in views[range.clone()].iter().zip(&spots[range]) {
            for &((node, ..), sum) in spots {
                if let Some(frame) = view.stack(node).find(|frame| is_program(frame)) {
                    *costs.entry(module(frame.dso_path)).or_default() += sum.weight;
                }
            }
        }
        costs
    };
    let (base, new) = (programs(0..base), programs(base..views.len()));
    let most = |costs: &BTreeMap<&str, f64>| {
        costs.iter().max_by(|one, other| one.1.total_cmp(other.1)).map(|(&name, _)| name.to_owned())
    };
    let (old, renamed) = (most(&base)?, most(&new)?);
    (!base.contains_key(&*renamed) && !new.contains_key(&*old)).then_some((old, renamed))
}

fn is_program(frame: &ViewFrame<'_>) -> bool {
    frame.kind == Kind::User && frame.dso_path.starts_with('/') && !is_library(frame.dso_path)
}
