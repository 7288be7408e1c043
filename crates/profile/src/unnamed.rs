//! Functions without a symbol: the grouping of frames into such functions, and their names, as in `libz.so.1+0xaa60`.
//!
//! Unwind information has the start of most of them ([`Symbols::nameless_start`](crate::Symbols::nameless_start)).

use std::collections::HashMap;
use std::ops::Range;

use crate::dso::{DsoId, DsoKind};
use crate::frame::{Address, FrameId};
use crate::profile::Profile;

/// A function without a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnnamedFunction {
    /// The file with its code.
    pub dso: Option<DsoId>,
    /// First address, in the file's address space; the address of the frame if the start is not known.
    pub start: Address,
    /// End of an anonymous mapping, which is one function.
    pub end: Option<Address>,
}

impl UnnamedFunction {
    /// Returns the name: last component of the file's path and the address in it.
    pub fn name(&self, profile: &Profile) -> String {
        let path = self.dso.map_or("", |dso| profile.strings.get(profile.dsos[dso].path));
        let name = unnamed_function_name(path, self.start.0);
        self.end.map_or(name.clone(), |end| format!("{name}-{:#x}", end.0))
    }
}

/// Returns the name of the function without a symbol that starts at an address of the file at `path`.
pub fn unnamed_function_name(path: &str, start: u64) -> String {
    match path.rsplit('/').next().unwrap_or(path) {
        "" => format!("{start:#x}"),
        file => format!("{file}+{start:#x}"),
    }
}

/// Returns the start of the function in the file at `path` that has such a name; `None` for other names, and those of other files.
pub fn unnamed_function_start(name: &str, path: &str) -> Option<Address> {
    let (file, start) = parse_unnamed_function(name)?;
    (path.rsplit('/').next() == Some(file)).then_some(Address(start))
}

/// Parses such a name into file and start; `None` for other names.
pub fn parse_unnamed_function(name: &str) -> Option<(&str, u64)> {
    let (file, digits) = name.rsplit_once("+0x")?;
    let is_canonical = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let start = u64::from_str_radix(digits, 16).ok().filter(|_| is_canonical)?;
    (!file.is_empty() && !file.contains('/')).then_some((file, start))
}

/// Finds the functions of frames without a name.
///
/// A compiler that does not report names puts thousands of functions into an anonymous mapping: a single address is meaningless, but all of a mapping
/// together show its cost.
#[derive(Clone, Debug, Default)]
pub struct UnnamedFunctions(HashMap<DsoId, Vec<Range<u64>>>);

impl UnnamedFunctions {
    /// Reads the mappings of a profile.
    pub fn of(profile: &Profile) -> Self {
        let mut regions: HashMap<DsoId, Vec<Range<u64>>> = HashMap::new();
        for mapping in &profile.mappings {
            if matches!(profile.dsos[mapping.dso].kind, DsoKind::Anonymous { .. }) {
                regions.entry(mapping.dso).or_default().push(mapping.start..mapping.end);
            }
        }
        regions.values_mut().for_each(|regions| {
            regions.sort_unstable_by_key(|region| (region.start, region.end));
            regions.dedup();
        });
        Self(regions)
    }

    /// Returns the function of a frame.
    pub fn find(&self, profile: &Profile, id: FrameId) -> UnnamedFunction {
        let frame = profile.frames[id];
        let (start, end) = match self.region(frame.dso, frame.address.0) {
            Some(region) => (Address(region.start), Some(Address(region.end))),
            None => (profile.symbols.nameless_start(id).unwrap_or(frame.lookup()), None),
        };
        UnnamedFunction { dso: frame.dso, start, end }
    }

    /// Returns the region with an address; the last one that starts before it, if a region replaced others.
    fn region(&self, dso: Option<DsoId>, address: u64) -> Option<Range<u64>> {
        let regions = self.0.get(&dso?)?;
        let before = regions.partition_point(|region| region.start <= address);
        regions.get(..before)?.iter().rev().take(8).find(|region| address < region.end).cloned()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::{AddressSpace, Dso, Found, Frame, FrameKind, Function, Line, Mapping, Process};

    fn frame(profile: &mut Profile, dso: DsoId, address: u64) -> FrameId {
        let address = Address(address);
        let kind = FrameKind::User;
        profile.frames.add(Frame { kind, dso: Some(dso), address, is_return: false, found: Found::Sampled })
    }

    #[test]
    fn code_without_a_file_is_one_function_for_each_mapping() {
        let mut profile = Profile::default();
        let (empty, anon) = (profile.strings.empty(), profile.strings.add("[anon]"));
        let process = profile.processes.push(Process { pid: 7, ppid: 0, exe: empty });
        let [made, file] = [DsoKind::Anonymous { pid: 7 }, DsoKind::File].map(|kind| {
            profile.dsos.add(Dso { path: anon, build_id: None, kind, addresses: AddressSpace::Avma })
        });
        for (dso, start, end) in [
            (made, 0x1000, 0x9000),
            (made, 0x20000, 0x21000),
            (made, 0x1000, 0x3000),
            (file, 0x50000, 0x60000),
        ] {
            profile.mappings.push(Mapping { process, dso, start, end, bias: 0 });
        }
        let unnamed = UnnamedFunctions::of(&profile);
        let mut name = |dso, at| {
            let id = frame(&mut profile, dso, at);
            unnamed.find(&profile, id).name(&profile)
        };
        assert_eq!(name(made, 0x1000), "[anon]+0x1000-0x9000");
        assert_eq!(name(made, 0x8fff), "[anon]+0x1000-0x9000");
        assert_eq!(name(made, 0x20fff), "[anon]+0x20000-0x21000");
        assert_eq!([0xfff, 0x9000].map(|at| name(made, at)), ["[anon]+0xfff", "[anon]+0x9000"]);
        assert_eq!(name(file, 0x50000), "[anon]+0x50000");
    }

    #[test]
    fn frames_of_a_function_have_the_name_of_its_beginning() {
        let mut profile = Profile::default();
        let path = profile.strings.add("/usr/lib/libz.so.1");
        let dso = Dso { path, build_id: None, kind: DsoKind::File, addresses: AddressSpace::Svma };
        let dso = profile.dsos.add(dso);
        let [inside, beside] = [0xaa72, 0xc000].map(|at| frame(&mut profile, dso, at));
        let empty = profile.strings.empty();
        let start = Some(Address(0xaa60));
        let function = Function {
            name: empty,
            linkage_name: empty,
            dso: Some(dso),
            start,
            source_file: empty,
            start_line: 0,
        };
        let function = profile.symbols.functions.add(function);
        profile.symbols.set(inside, &[Line { function, file: empty, line: 0, inlined: false }]);
        let unnamed = UnnamedFunctions::of(&profile);
        let names = [inside, beside].map(|id| unnamed.find(&profile, id).name(&profile));
        assert_eq!(names, ["libz.so.1+0xaa60", "libz.so.1+0xc000"]);
        assert_eq!(parse_unnamed_function(&names[0]), Some(("libz.so.1", 0xaa60)));
    }

    #[test]
    fn other_names_are_told_from_those_of_unnamed_functions() {
        for name in [
            "deflate",
            "0xaa60",
            "+0x10",
            "a/b+0x10",
            "operator+",
            "f+0x",
            "f+0x1G",
            "f+0xAB",
            "f+0x-1",
            "f+0x1+2",
        ] {
            assert_eq!(parse_unnamed_function(name), None, "{name}");
        }
    }
}
