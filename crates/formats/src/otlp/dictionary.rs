//! The dictionary of a request being built: each item is one row, however many profiles use it.
//!
//! Elsewhere: the assignment of samples to profiles (`write`, `resources`).

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;

use plumb_profile::{Dso, DsoId, DsoKind, FrameId, FrameKind, Profile, StackId, UnnamedFunctions};

use super::message::{self, AnyValue};
use super::resources::FigureStack;

/// A table of the dictionary.
struct Rows<K, T> {
    list: Vec<T>,
    known: HashMap<K, i32>,
}

impl<K: Eq + Hash, T> Rows<K, T> {
    /// Starts with the empty first row.
    fn new(none: T) -> Self {
        Rows { list: vec![none], known: HashMap::new() }
    }

    fn known(&self, key: &K) -> Option<i32> {
        self.known.get(key).copied()
    }

    fn add(&mut self, key: K, row: T) -> i32 {
        // More rows than that do not fit in memory.
        let place = i32::try_from(self.list.len()).unwrap_or(i32::MAX);
        self.list.push(row);
        self.known.insert(key, place);
        place
    }
}

/// The dictionary so far.
pub(super) struct DictionaryTables<'p> {
    pub(super) profile: &'p Profile,
    unnamed: UnnamedFunctions,
    strings: Rows<String, String>,
    attributes: Rows<(&'static str, String), message::Attribute>,
    mappings: Rows<DsoId, message::OtlpMapping>,
    functions: Rows<message::OtlpFunction, message::OtlpFunction>,
    locations: Rows<FrameId, message::Location>,
    stacks: Rows<StackId, message::Stack>,
    /// Stacks of figures, by the names of their functions.
    named: HashMap<FigureStack, i32>,
    /// Locations of these stacks, by the name of the function.
    named_locations: HashMap<String, i32>,
}

impl<'p> DictionaryTables<'p> {
    /// Starts with the empty first rows only.
    pub(super) fn new(profile: &'p Profile) -> Self {
        DictionaryTables {
            profile,
            unnamed: UnnamedFunctions::of(profile),
            strings: Rows { list: vec![String::new()], known: [(String::new(), 0)].into() },
            attributes: Rows::new(message::Attribute::default()),
            mappings: Rows::new(message::OtlpMapping::default()),
            functions: Rows::new(message::OtlpFunction::default()),
            locations: Rows::new(message::Location::default()),
            stacks: Rows::new(message::Stack::default()),
            named: HashMap::new(),
            named_locations: HashMap::new(),
        }
    }

    /// Returns the message.
    pub(super) fn dictionary(self) -> message::Dictionary {
        message::Dictionary {
            mapping_table: self.mappings.list,
            location_table: self.locations.list,
            function_table: self.functions.list,
            link_table: vec![message::Link {}],
            string_table: self.strings.list,
            attribute_table: self.attributes.list,
            stack_table: self.stacks.list,
        }
    }

    /// Returns the row of a string.
    pub(super) fn string(&mut self, text: &str) -> i32 {
        let known = self.strings.known.get(text).copied();
        known.unwrap_or_else(|| self.strings.add(text.to_owned(), text.to_owned()))
    }

    /// Returns the row of an attribute.
    pub(super) fn attribute(&mut self, name: &'static str, value: AnyValue) -> i32 {
        let key = (name, format!("{value:?}"));
        if let Some(known) = self.attributes.known(&key) {
            return known;
        }
        let key_strindex = self.string(name);
        self.attributes.add(key, message::Attribute { key_strindex, value: Some(value) })
    }

    /// Returns the row of a stack.
    pub(super) fn stack(&mut self, stack: StackId) -> i32 {
        if let Some(known) = self.stacks.known(&stack) {
            return known;
        }
        let frames: Vec<FrameId> = self.profile.frames_of(Some(stack)).collect();
        let location_indices = frames.into_iter().map(|frame| self.location(frame)).collect();
        self.stacks.add(stack, message::Stack { location_indices })
    }

    /// Returns the row of a figure's stack, by the names of its functions, innermost first.
    pub(super) fn named_stack(&mut self, names: &[Cow<'static, str>]) -> i32 {
        if let Some(&known) = self.named.get(names) {
            return known;
        }
        let location_indices = names.iter().map(|name| self.named_location(name)).collect();
        self.stacks.list.push(message::Stack { location_indices });
        let place = i32::try_from(self.stacks.list.len() - 1).unwrap_or(i32::MAX);
        self.named.insert(names.to_vec(), place);
        place
    }

    fn named_location(&mut self, name: &str) -> i32 {
        if let Some(&known) = self.named_locations.get(name) {
            return known;
        }
        let line = self.line(name, "", "", (0, 0));
        let place = i32::try_from(self.locations.list.len()).unwrap_or(i32::MAX);
        self.locations.list.push(message::Location { lines: vec![line], ..message::Location::default() });
        self.named_locations.insert(name.to_owned(), place);
        place
    }

    fn location(&mut self, id: FrameId) -> i32 {
        if let Some(known) = self.locations.known(&id) {
            return known;
        }
        let profile = self.profile;
        let frame = &profile.frames[id];
        let kind = match frame.kind {
            FrameKind::Kernel => "kernel",
            FrameKind::User | FrameKind::Truncation(_) => "native",
        };
        let mapping = frame.dso.filter(|_| frame.cut().is_none());
        let location = message::Location {
            mapping_index: mapping.map_or(0, |dso| self.mapping(dso)),
            address: if profile.has_address(id) { frame.lookup().0 } else { 0 },
            lines: match frame.cut() {
                Some(cut) => vec![self.line(&format!("[{}]", cut.text()), "", "", (0, 0))],
                None => {
                    let text = |id| profile.strings.get(id);
                    let lines = profile.symbols.of(id).iter();
                    let line = |line: &plumb_profile::Line| {
                        let function = &profile.symbols.functions[line.function];
                        let (name, linkage) = (text(function.name), text(function.linkage_name));
                        self.line(name, linkage, text(line.file), (function.start_line, line.line))
                    };
                    match lines.len() {
                        0 => self.unnamed_line(id).into_iter().collect(),
                        _ => lines.map(line).collect(),
                    }
                }
            },
            attribute_indices: vec![self.attribute("profile.frame.type", AnyValue::of_text(kind))],
        };
        self.locations.add(id, location)
    }

    /// Returns the line of a function without a symbol. `None` if only its file, which the receiver may have, shows where it starts.
    fn unnamed_line(&mut self, id: FrameId) -> Option<message::Line> {
        let profile = self.profile;
        let has_build_id = |dso: DsoId| profile.dsos[dso].build_id.is_some();
        let is_open =
            profile.symbols.nameless_start(id).is_none() && profile.frames[id].dso.is_some_and(has_build_id);
        let name = || self.unnamed.find(profile, id).name(profile);
        let name = (!is_open).then(name)?;
        Some(self.line(&name, "", "", (0, 0)))
    }

    /// Returns a line of a function with this name, with the function's first line.
    pub(super) fn line(
        &mut self,
        name: &str,
        linkage: &str,
        file: &str,
        (start, line): (u32, u32),
    ) -> message::Line {
        let function = message::OtlpFunction {
            name_strindex: self.string(name),
            system_name_strindex: self.string(if linkage.is_empty() { name } else { linkage }),
            filename_strindex: self.string(file),
            start_line: start.into(),
        };
        let known = self.functions.known(&function);
        let function_index = known.unwrap_or_else(|| self.functions.add(function, function));
        message::Line { function_index, line: line.into() }
    }

    fn mapping(&mut self, id: DsoId) -> i32 {
        if let Some(known) = self.mappings.known(&id) {
            return known;
        }
        let Dso { path, build_id, kind, .. } = &self.profile.dsos[id];
        let build_id = build_id.as_ref().filter(|_| *kind == DsoKind::File);
        let attribute_indices = build_id
            .map(|id| self.attribute("process.executable.build_id.gnu", AnyValue::of_text(&id.to_string())))
            .into_iter()
            .collect();
        let filename_strindex = self.string(self.profile.strings.get(*path));
        self.mappings.add(
            id,
            message::OtlpMapping { filename_strindex, attribute_indices, ..message::OtlpMapping::default() },
        )
    }
}
