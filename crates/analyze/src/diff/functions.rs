//! Matches functions across recordings, even if the program was rebuilt in between.
//!
//! Frames belong to one function if they have the same folded name in the same module; if that names several functions in any recording
//! (static ones of one name), also the same source file. Addresses without a symbol are one function per module: they mean nothing in another build.

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
    /// Name as the last recording that has the function writes it, without compiler suffixes for copies.
    pub name: String,
    /// Path of the file with its code; empty if there is none.
    pub dso: String,
    /// Source file, empty if not known.
    pub source: String,
    /// User code, kernel code or a marker.
    pub kind: Kind,
}

/// The key under which frames are matched.
type Key = (Kind, String, String);

/// The functions of several views.
pub(super) struct Functions {
    pub names: Vec<DiffFunction>,
    /// The function number per view and frame.
    of: Vec<Vec<u32>>,
}

impl Functions {
    /// Numbers the functions of all views, of which the first `base` are the base's, with their costs.
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

    /// Returns the function of a frame of a view, numbered over both sides.
    pub fn of(&self, view: usize, frame: FrameIndex) -> u32 {
        self.of[view][frame.0 as usize]
    }
}

impl DiffFunction {
    /// Takes over the details that a later recording has.
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

/// Returns the source file that a frame's function is defined in.
fn source<'p>(view: &View<'p>, frame: &ViewFrame<'p>) -> &'p str {
    let profile = view.profile();
    let function = frame.function.map(|id| profile.symbols.functions[id]);
    function.map_or("", |function| profile.strings.get(function.source_file))
}

/// Returns the keys that several functions of one recording share, in different source files.
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

/// Returns the names of the program that costs most in the base and of that in the new side, if neither occurs in the other side: it was renamed.
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
