//! Kernel frames: modules of addresses, and decoding of callchains.

use std::ops::Range;

use linux_perf_event_reader::constants::PERF_CONTEXT_MAX;
use linux_perf_event_reader::constants::{PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER};
use plumb_process::elf::{Endianness, build_id_of_notes};
use plumb_profile::{
    Address, AddressSpace, BuildId, Dso, DsoId, DsoKind, Found, Frame, FrameId, FrameKind, Profile,
};
use rustc_hash::FxHashMap;

use crate::perf_records::Words;

/// Name of the kernel itself, as in perf.
pub(crate) const KERNEL: &str = "[kernel.kallsyms]";

/// Modules and frames of the kernel.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    /// Modules in order of address.
    modules: Vec<(Range<u64>, String)>,
    build_id: Option<BuildId>,
    dso: Option<DsoId>,
    frames: FxHashMap<u64, FrameId>,
}

impl Kernel {
    /// Reads this machine's kernel modules, if permitted.
    pub(crate) fn of_this_machine() -> Self {
        let mut kernel = Kernel::default();
        let modules = std::fs::read_to_string("/proc/modules").unwrap_or_default();
        for line in modules.lines() {
            let mut words = line.split(' ');
            let (Some(name), Some(size), Some(start)) = (words.next(), words.next(), words.nth(3)) else {
                continue;
            };
            let start = start.strip_prefix("0x").and_then(|hex| u64::from_str_radix(hex, 16).ok());
            // Addresses are zero for users without permission.
            if let (Some(start @ 1..), Ok(size)) = (start, size.parse::<u64>()) {
                kernel.add_module(start..start.saturating_add(size), name);
            }
        }
        kernel.build_id = std::fs::read("/sys/kernel/notes").ok().and_then(|notes| build_id_in(&notes));
        kernel
    }

    /// Handles a mapping of the kernel in a perf.data file: the kernel itself, or a module by path or name.
    pub(crate) fn map(&mut self, range: Range<u64>, path: &str) {
        let file = path.rsplit('/').next().unwrap_or(path);
        // The kernel itself needs no range: an address outside of all modules is in the kernel.
        if file.starts_with("[kernel") || file.starts_with("[guest") || file.starts_with("vmlinux") {
            return;
        }
        let stem = file.split(".ko").next().unwrap_or(file);
        let name = stem.trim_matches(['[', ']']).replace('-', "_");
        self.add_module(range, &name);
    }

    fn add_module(&mut self, range: Range<u64>, name: &str) {
        let at = self.modules.partition_point(|(other, _)| other.start < range.start);
        self.modules.insert(at, (range, format!("[{name}]")));
    }

    /// Sets the kernel's build ID.
    pub(crate) fn set_build_id(&mut self, id: &[u8]) {
        self.build_id = BuildId::new(id);
    }

    /// Forgets all rows.
    pub(crate) fn forget_rows(&mut self) {
        self.dso = None;
        self.frames = FxHashMap::default();
    }

    fn dso_of(&mut self, profile: &mut Profile, address: u64) -> DsoId {
        let after = self.modules.partition_point(|(range, _)| range.start <= address);
        if let Some((range, name)) = after.checked_sub(1).and_then(|index| self.modules.get(index))
            && range.contains(&address)
        {
            let path = profile.strings.add(name);
            let kind = DsoKind::KernelModule;
            return profile.dsos.add(Dso { path, build_id: None, kind, addresses: AddressSpace::Avma });
        }
        *self.dso.get_or_insert_with(|| {
            let path = profile.strings.add(KERNEL);
            let build_id = self.build_id.clone();
            profile.dsos.add(Dso { path, build_id, kind: DsoKind::Kernel, addresses: AddressSpace::Avma })
        })
    }

    /// The frame of a kernel address.
    pub(crate) fn frame(&mut self, profile: &mut Profile, address: u64, is_return: bool) -> FrameId {
        // Kernel addresses have their highest bits set, so shifting one out loses nothing.
        let key = address << 1 | u64::from(is_return);
        if let Some(&id) = self.frames.get(&key) {
            return id;
        }
        let dso = Some(self.dso_of(profile, address));
        let (kind, found) = (FrameKind::Kernel, Found::Sampled);
        let frame = Frame { kind, dso, address: Address(address), is_return, found };
        let id = profile.frames.add(frame);
        self.frames.insert(key, id);
        id
    }
}

/// One address of a callchain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) in_kernel: bool,
    pub(crate) address: u64,
    pub(crate) is_return: bool,
}

/// The addresses of a callchain, innermost first. The first kernel and the first user address are program
/// counters, the others return addresses. Other contexts (guests, hypervisors) are left out.
pub(crate) fn links(callchain: Words<'_>) -> impl Iterator<Item = Link> {
    let mut context = None;
    let mut is_return = false;
    callchain.iter().filter_map(move |address| {
        if address >= PERF_CONTEXT_MAX {
            is_return = false;
            context = match address {
                PERF_CONTEXT_KERNEL => Some(true),
                PERF_CONTEXT_USER => Some(false),
                _ => None,
            };
            return None;
        }
        let link = Link { in_kernel: context?, address, is_return };
        is_return = true;
        Some(link)
    })
}

/// `PERF_CONTEXT_USER_DEFERRED`: the user's part comes in a record of its own, with the cookie that follows.
const CONTEXT_USER_DEFERRED: u64 = -640_i64 as u64;

/// The cookie of the record with the user's part, if it comes in one.
pub(crate) fn cookie(callchain: Words<'_>) -> Option<u64> {
    callchain.iter().skip_while(|&address| address != CONTEXT_USER_DEFERRED).nth(1)
}

/// The GNU build id among the kernel's ELF notes.
fn build_id_in(notes: &[u8]) -> Option<BuildId> {
    BuildId::new(build_id_of_notes(notes, Endianness::default())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_find_their_module() {
        let (mut kernel, mut profile) = (Kernel::default(), Profile::default());
        kernel.map(
            0xffff_ffff_c040_0000..0xffff_ffff_c041_0000,
            "/lib/modules/6.1/kernel/fs/ext4/nf-tables.ko.xz",
        );
        kernel.map(0xffff_ffff_c010_0000..0xffff_ffff_c011_0000, "[bpf]");
        kernel.map(0xffff_ffff_8100_0000..0xffff_ffff_ffff_ffff, "[kernel.kallsyms]_text");
        let mut name = |address| {
            let id = kernel.frame(&mut profile, address, false);
            let dso = profile.frames[id].dso.unwrap();
            profile.strings.get(profile.dsos[dso].path).to_owned()
        };
        assert_eq!(name(0xffff_ffff_c040_0010), "[nf_tables]");
        assert_eq!(name(0xffff_ffff_c010_ffff), "[bpf]");
        assert_eq!(name(0xffff_ffff_c011_0000), KERNEL);
        assert_eq!(name(0xffff_ffff_8100_0010), KERNEL);
    }

    #[test]
    fn kernel_build_id_is_the_one_file_says() {
        let Ok(notes) = std::fs::read("/sys/kernel/notes") else {
            plumb_fixtures::skip(plumb_fixtures::Requirement::Kernel, "/sys/kernel/notes is not readable");
            return;
        };
        let id = build_id_in(&notes).unwrap().to_string();
        let hex: String = notes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(
            id.len() == 40
                && hex.contains(&format!("14000000030000004744e5500{id}").replace("4744e5500", "474e5500"))
        );
    }
}
