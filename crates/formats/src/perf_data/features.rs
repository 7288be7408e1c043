//! The header's feature sections: recorder, command, machine and time.

use linux_perf_event_reader::Endianness;
use plumb_profile::BuildId;

use super::bytes::{Bytes, text};
use super::event::EventDesc;

/// `HEADER_*` of tools/perf/util/header.h.
pub(super) const BUILD_ID: u32 = 2;
const HOSTNAME: u32 = 3;
const OSRELEASE: u32 = 4;
const VERSION: u32 = 5;
const ARCH: u32 = 6;
const NRCPUS: u32 = 7;
const CMDLINE: u32 = 11;
const EVENT_DESC: u32 = 12;
const DIR_FORMAT: u32 = 24;
const CLOCK_DATA: u32 = 29;

/// `PERF_RECORD_MISC_BUILD_ID_SIZE`: the byte after the id's 20 has the number of valid ones.
const MISC_BUILD_ID_SIZE: u16 = 1 << 15;
/// `PERF_RECORD_MISC_CPUMODE_MASK` and `PERF_RECORD_MISC_KERNEL`.
const MISC_CPUMODE: u16 = 7;
const MISC_KERNEL: u16 = 1;

/// The file's metadata. Unknown values are empty, 0 or `None`.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// Version of perf, such as `6.1.187`.
    pub perf_version: String,
    /// Command line of `perf record`, one string per argument.
    pub command: Vec<String>,
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// Machine architecture.
    pub arch: String,
    /// Number of CPUs online.
    pub cpus: u32,
    /// One moment on two clocks: nanoseconds since 1970-01-01 UTC, and the sample clock's time. Only
    /// `perf record -k` stores it.
    pub clock: Option<(u64, u64)>,
    /// Version of the directory that the file is in: 0 for one with all samples in this file, 1 where they are in files `data.0`,
    /// `data.1`, … beside it. `None`: the file is not from a directory, or its recorder was killed.
    pub directory_version: Option<u64>,
    /// The events. Never empty.
    pub events: Vec<EventDesc>,
    /// Build ids by path, as stored by perf. The kernel's path is `[kernel.kallsyms]`.
    pub build_ids: Vec<(String, BuildId)>,
}

impl Header {
    /// Whether a feature's section is used.
    pub(super) fn wants(feature: u32) -> bool {
        [BUILD_ID, HOSTNAME, OSRELEASE, VERSION, ARCH, NRCPUS, CMDLINE, EVENT_DESC, DIR_FORMAT, CLOCK_DATA]
            .contains(&feature)
    }

    /// Reads a feature's section. `None` if it is damaged; the valid part is kept.
    pub(super) fn feature(&mut self, feature: u32, bytes: &[u8], endian: Endianness) -> Option<()> {
        let mut bytes = Bytes::new(bytes, endian);
        match feature {
            HOSTNAME => self.host = bytes.string()?,
            OSRELEASE => self.kernel = bytes.string()?,
            VERSION => self.perf_version = bytes.string()?,
            ARCH => self.arch = bytes.string()?,
            NRCPUS => {
                bytes.skip(4)?; // configured, as opposed to online
                self.cpus = bytes.u32()?;
            }
            CMDLINE => {
                self.command.clear();
                for _ in 0..bytes.u32()? {
                    self.command.push(bytes.string()?);
                }
            }
            EVENT_DESC => self.event_names(bytes)?,
            CLOCK_DATA => {
                bytes.skip(8)?; // version, clock id
                self.clock = Some((bytes.u64()?, bytes.u64()?));
            }
            DIR_FORMAT => self.directory_version = Some(bytes.u64()?),
            BUILD_ID => self.build_id_list(bytes)?,
            _ => {}
        }
        Some(())
    }

    /// Reads `HEADER_EVENT_DESC`: the attributes once more, this time with names.
    fn event_names(&mut self, mut bytes: Bytes<'_>) -> Option<()> {
        let (count, attr_size) = (bytes.length()?, bytes.length()?);
        for number in 0..count {
            bytes.skip(attr_size)?;
            let ids = bytes.length()?;
            let name = bytes.string()?;
            let mut ids = bytes.split(ids.checked_mul(8)?)?;
            // In pipe mode the events came as separate records, perhaps in another order.
            let first = ids.u64();
            let owner = self
                .events
                .iter()
                .position(|event| first.is_some_and(|first| event.ids.contains(&first)))
                .unwrap_or(number);
            if let Some(event) = self.events.get_mut(owner) {
                event.set_name(name);
            }
        }
        Some(())
    }

    fn build_id_list(&mut self, mut bytes: Bytes<'_>) -> Option<()> {
        while !bytes.rest().is_empty() {
            let (_, misc, size) = (bytes.u32()?, bytes.u16()?, bytes.u16()?);
            let body = bytes.take(usize::from(size).checked_sub(8)?)?;
            self.build_id(misc, body)?;
        }
        Some(())
    }

    /// Reads the body of one build id record: pid, 20 bytes of id and 4 of padding, path.
    pub(super) fn build_id(&mut self, misc: u16, body: &[u8]) -> Option<()> {
        let (id, path) = (body.get(4..28)?, text(body.get(28..)?));
        let length = if misc & MISC_BUILD_ID_SIZE != 0 { usize::from(id[20]).min(20) } else { 20 };
        let id = BuildId::new(&id[..length])?;
        let module = path.starts_with('[') || path.ends_with(".ko") || path.contains(".ko.");
        let vmlinux =
            misc & MISC_CPUMODE == MISC_KERNEL && (!module || path.starts_with("[kernel.kallsyms]"));
        self.build_ids.push((if vmlinux { "[kernel.kallsyms]".into() } else { path }, id));
        Some(())
    }
}
