//! Rows of anonymous memory, and code segments of files.

use plumb_capture_api::CodeSegment;
use plumb_process::Elf;
use plumb_profile::{AddressSpace, Dso, DsoId, DsoKind, Profile};

/// The DSO of anonymous memory of a process.
pub(super) fn anonymous(profile: &mut Profile, pid: u32) -> DsoId {
    let path = profile.strings.add("[anon]");
    let kind = DsoKind::Anonymous { pid };
    profile.dsos.add(Dso { path, build_id: None, kind, addresses: AddressSpace::Avma })
}

/// The code segments of a file.
pub(super) fn segments_of(elf: &Elf) -> Vec<CodeSegment> {
    elf.code().map(|(address, offset, size)| CodeSegment { address, offset: offset.0, size }).collect()
}
