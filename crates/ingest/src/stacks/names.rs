//! The functions of interpreted programs in the profile, and the frames of their lines.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};

use plumb_profile::{
    Address, AddressSpace, Dso, DsoId, DsoKind, Found, Frame, FrameId, FrameKind, Function as FunctionRow,
    FunctionId, Line, Profile, StringId,
};
use rustc_hash::FxHashMap;

/// The functions named so far.
#[derive(Debug, Default)]
pub(crate) struct ScriptNames {
    dsos: FxHashMap<&'static str, DsoId>,
    /// By name, file and first line.
    functions: FxHashMap<(DsoId, StringId, StringId, u32), FunctionId>,
    /// Number of each function, which stands for its address, by a hash of its identity. Kept when the profile is taken out, so that a frame has one
    /// address in all profiles of a recording.
    numbers: HashMap<u64, u32>,
}

impl ScriptNames {
    /// Forgets all rows.
    pub(crate) fn forget_rows(&mut self) {
        self.dsos.clear();
        self.functions.clear();
    }

    /// The pseudo-file for code of a language.
    pub(crate) fn dso(&mut self, profile: &mut Profile, language: &'static str) -> DsoId {
        *self.dsos.entry(language).or_insert_with(|| {
            let path = profile.strings.add(&format!("[{language}]"));
            let (kind, addresses) = (DsoKind::Script, AddressSpace::Line);
            profile.dsos.add(Dso { path, build_id: None, kind, addresses })
        })
    }

    /// A function by its DSO, name, file and first line.
    pub(crate) fn function(
        &mut self,
        profile: &mut Profile,
        dso: DsoId,
        name: &str,
        (file, line): (&str, u32),
    ) -> FunctionId {
        let numbers = &mut self.numbers;
        let mut number = |language: &str| {
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            *numbers.entry(hash(&(language, name, file, line))).or_insert(next)
        };
        let (name_id, source_file) = (profile.strings.add(name), profile.strings.add(file));
        *self.functions.entry((dso, name_id, source_file, line)).or_insert_with(|| {
            let number = number(profile.strings.get(profile.dsos[dso].path));
            let start = Some(Address(u64::from(number) << 32));
            let linkage_name = profile.strings.add("");
            profile.symbols.functions.add(FunctionRow {
                name: name_id,
                linkage_name,
                dso: Some(dso),
                start,
                source_file,
                start_line: line,
            })
        })
    }
}

/// A hash that is stable while the recorder runs.
fn hash(row: &impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(row)
}

/// The frame of a line of a function.
pub(crate) fn line_frame(profile: &mut Profile, function: FunctionId, line: u32) -> FrameId {
    let FunctionRow { dso, start, source_file, .. } = profile.symbols.functions[function];
    let address = Address(start.map_or(0, |start| start.0) | u64::from(line));
    let frame = Frame { kind: FrameKind::User, dso, address, is_return: false, found: Found::Sampled };
    let id = profile.frames.add(frame);
    if profile.symbols.of(id).is_empty() {
        profile.symbols.set(id, &[Line { function, file: source_file, line, inlined: false }]);
    }
    id
}
