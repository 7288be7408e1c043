//! The functions of interpreted programs in the profile: which were named, and the frames of their lines.

use plumb_profile::{
    Address, AddressSpace, Dso, DsoId, DsoKind, Found, Frame, FrameId, FrameKind, Function as FunctionRow,
    FunctionId, Line, Profile, StringId,
};
use rustc_hash::FxHashMap;

/// What was named so far.
#[derive(Debug, Default)]
pub(crate) struct ScriptNames {
    dsos: FxHashMap<&'static str, DsoId>,
    /// By name, file and first line.
    functions: FxHashMap<(DsoId, StringId, StringId, u32), FunctionId>,
}

impl ScriptNames {
    /// What stands in the place of a file for code of a language.
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
        let (name, source_file) = (profile.strings.add(name), profile.strings.add(file));
        let next = self.functions.len() as u64;
        *self.functions.entry((dso, name, source_file, line)).or_insert_with(|| {
            let start = Some(Address(next << 32));
            let linkage_name = profile.strings.add("");
            profile.symbols.functions.add(FunctionRow {
                name,
                linkage_name,
                dso: Some(dso),
                start,
                source_file,
            })
        })
    }
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
