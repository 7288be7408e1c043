//! Visible frames: an inlined call is a frame of its own, and every frame has a name.

use std::borrow::Cow;
use std::collections::HashMap;

use plumb_profile::{
    Address, DsoId, DsoKind, Found, FrameId, FrameKind, FunctionId, Line, Profile, Truncation,
    UnnamedFunctions,
};

/// A distinct visible frame of a [`View`](crate::View).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FrameIndex(pub(crate) u32);

/// A distinct function of a view, numbered from 0 without gaps. An inlined copy of a function has the same number as
/// its outlined self; functions without a symbol are identified by their start address, and each kind of marker has its own number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SymbolId(pub(crate) u32);

impl SymbolId {
    /// Returns the number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The kind of a visible frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// User code.
    User,
    /// Kernel code.
    Kernel,
    /// Not code: the reason why frames are missing here.
    Marker,
}

/// A visible frame.
#[derive(Clone, Debug)]
pub struct ViewFrame<'p> {
    /// Function name; without a symbol, its file and start address ([`UnnamedFunction`](plumb_profile::UnnamedFunction));
    /// for a marker its text in brackets.
    pub name: Cow<'p, str>,
    /// Function number, for grouping.
    pub symbol: SymbolId,
    /// User code, kernel code or a marker.
    pub kind: Kind,
    /// Whether the function's name is known.
    pub named: bool,
    /// Whether this call was inlined into the next outer frame.
    pub inlined: bool,
    /// The file; for a marker, the file that caused it.
    pub dso: Option<DsoId>,
    /// Path of that file, empty if there is none.
    pub dso_path: &'p str,
    /// Source file, empty if not known.
    pub file: &'p str,
    /// Line in the source file, 0 if not known.
    pub line: u32,
    /// Address in the file, as sampled: a return address for callers. 0 for markers.
    pub address: Address,
    /// Method by which the unwinder found the frame.
    pub found: Found,
    /// The function, if known.
    pub function: Option<FunctionId>,
    /// The profile's frame that it comes from; `None` for frames that only exist in the view.
    pub frame: Option<FrameId>,
    /// Index of this line among the frame's lines, 0 being the innermost inlined call; 0 without lines.
    pub line_index: usize,
    /// Reason of the truncation, for a marker from the profile.
    pub cut: Option<Truncation>,
}

impl ViewFrame<'_> {
    /// Returns the last component of the file's path, as perf shows it.
    pub fn dso_name(&self) -> &str {
        self.dso_path.rsplit('/').next().unwrap_or_default()
    }
}

/// The key that makes two frames one function.
#[derive(PartialEq, Eq, Hash)]
enum Identity<'p> {
    /// File, name, and start of the outlined function (several static functions may share a name).
    Function(&'p str, &'p str, Option<u64>),
    /// File and address. The id distinguishes the memory of different processes, which is not a file.
    Address(&'p str, Option<DsoId>, u64),
    Marker(Cow<'p, str>),
}

/// Creates visible frames and numbers their functions.
pub(crate) struct Expander<'p> {
    profile: &'p Profile,
    symbols: HashMap<Identity<'p>, SymbolId>,
    unnamed: UnnamedFunctions,
    /// Start of the outlined function by file and name; `None` if there are several.
    outlined: HashMap<(&'p str, &'p str), Option<u64>>,
}

impl<'p> Expander<'p> {
    pub fn new(profile: &'p Profile) -> Self {
        let mut outlined = HashMap::new();
        for (_, function) in profile.symbols.functions.iter() {
            let Some(start) = function.start else { continue };
            let key = (path(profile, function.dso), profile.strings.get(function.name));
            outlined
                .entry(key)
                .and_modify(|known| {
                    if *known != Some(start.0) {
                        *known = None;
                    }
                })
                .or_insert(Some(start.0));
        }
        Self { unnamed: UnnamedFunctions::of(profile), profile, symbols: HashMap::new(), outlined }
    }

    /// Returns how many functions were numbered.
    pub fn symbol_count(&self) -> usize {
        self.symbols.len()
    }

    /// Appends the visible frames of `id`, innermost inlined call first.
    pub fn expand(&mut self, id: FrameId, no_inline: bool, out: &mut Vec<ViewFrame<'p>>) {
        let lines = self.profile.symbols.of(id);
        let first = if no_inline { lines.len().saturating_sub(1) } else { 0 };
        if lines.is_empty() || self.profile.frames[id].cut().is_some() {
            out.push(self.nameless(id));
        } else {
            for (line_index, line) in lines.iter().enumerate().skip(first) {
                let frame = self.named(id, line);
                out.push(ViewFrame { line_index, ..frame });
            }
        }
    }

    /// Creates a marker that is not a frame of the profile.
    pub fn marker(&mut self, text: &'static str) -> ViewFrame<'p> {
        ViewFrame {
            name: text.into(),
            symbol: self.number(Identity::Marker(text.into())),
            kind: Kind::Marker,
            named: false,
            inlined: false,
            dso: None,
            dso_path: "",
            file: "",
            line: 0,
            address: Address(0),
            found: Found::Sampled,
            function: None,
            frame: None,
            line_index: 0,
            cut: None,
        }
    }

    fn named(&mut self, id: FrameId, line: &Line) -> ViewFrame<'p> {
        let profile = self.profile;
        let frame = profile.frames[id];
        let function = profile.symbols.functions[line.function];
        let name = profile.strings.get(function.name);
        // Code belongs to the file that the frame is in, also where the symbol does not say so.
        let dso_path = path(profile, frame.dso);
        let start = match function.start {
            Some(start) => Some(start.0),
            None => self.outlined.get(&(dso_path, name)).copied().flatten(),
        };
        ViewFrame {
            name: name.into(),
            symbol: self.number(Identity::Function(dso_path, name, start)),
            kind: if frame.kind == FrameKind::Kernel { Kind::Kernel } else { Kind::User },
            named: true,
            inlined: line.inlined,
            dso: frame.dso,
            dso_path,
            file: profile.strings.get(line.file),
            line: line.line,
            address: frame.address,
            found: frame.found,
            function: Some(line.function),
            frame: Some(id),
            line_index: 0,
            cut: None,
        }
    }

    fn nameless(&mut self, id: FrameId) -> ViewFrame<'p> {
        let frame = self.profile.frames[id];
        let dso_path = path(self.profile, frame.dso);
        let cut = frame.cut();
        let (name, identity, kind) = match frame.kind {
            FrameKind::Truncation(cut) => {
                let name = format!("[{}]", cut.text());
                (name.clone(), Identity::Marker(name.into()), Kind::Marker)
            }
            FrameKind::User | FrameKind::Kernel => {
                let kind = if frame.kind == FrameKind::Kernel { Kind::Kernel } else { Kind::User };
                let function = self.unnamed.find(self.profile, id);
                let memory =
                    frame.dso.filter(|dso| matches!(self.profile.dsos[*dso].kind, DsoKind::Anonymous { .. }));
                let identity = Identity::Address(dso_path, memory, function.start.0);
                (function.name(self.profile), identity, kind)
            }
        };
        ViewFrame {
            name: name.into(),
            symbol: self.number(identity),
            kind,
            named: false,
            inlined: false,
            dso: frame.dso,
            dso_path,
            file: "",
            line: 0,
            address: frame.address,
            found: frame.found,
            function: None,
            frame: Some(id),
            line_index: 0,
            cut,
        }
    }

    fn number(&mut self, identity: Identity<'p>) -> SymbolId {
        let next =
            SymbolId(u32::try_from(self.symbols.len()).expect("fewer than 2^32 functions fit in memory"));
        *self.symbols.entry(identity).or_insert(next)
    }
}

fn path(profile: &Profile, dso: Option<DsoId>) -> &str {
    dso.map_or("", |dso| profile.strings.get(profile.dsos[dso].path))
}
