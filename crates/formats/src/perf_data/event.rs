//! The events of a recording and their names.

use linux_perf_event_reader::{PerfEventAttr, SamplingPolicy};

use super::attr::Attr;

/// `PERF_TYPE_*` of include/uapi/linux/perf_event.h.
const TYPE_HARDWARE: u32 = 0;
const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;

/// perf's names of `PERF_COUNT_HW_*`, in order.
const HARDWARE: [&str; 10] = [
    "cycles",
    "instructions",
    "cache-references",
    "cache-misses",
    "branches",
    "branch-misses",
    "bus-cycles",
    "stalled-cycles-frontend",
    "stalled-cycles-backend",
    "ref-cycles",
];

/// perf's names of `PERF_COUNT_SW_*`, in order.
const SOFTWARE: [&str; 12] = [
    "cpu-clock",
    "task-clock",
    "page-faults",
    "context-switches",
    "cpu-migrations",
    "minor-faults",
    "major-faults",
    "alignment-faults",
    "emulation-faults",
    "dummy",
    "bpf-output",
    "cgroup-switches",
];

/// One event of the recording.
#[derive(Clone, Debug)]
pub struct EventDesc {
    /// Name as `perf` prints it, such as `cpu-clock:u`.
    pub name: String,
    /// Unit of a sample's period: `ns`, `cycles`, or the event's own name.
    pub unit: String,
    /// The attributes passed to the kernel.
    pub attr: PerfEventAttr,
    pub(super) raw: Attr,
    /// The ids in the event's records.
    pub(super) ids: Vec<u64>,
}

impl EventDesc {
    pub(super) fn new(raw: Attr, ids: Vec<u64>) -> Self {
        let mut event = EventDesc { name: String::new(), unit: String::new(), attr: raw.parsed, raw, ids };
        event.set_name(event.known_name());
        event
    }

    /// Returns the requested samples per second, if sampling was by frequency.
    pub fn frequency_hz(&self) -> Option<u32> {
        match self.attr.sampling_policy {
            SamplingPolicy::Frequency(hz) => u32::try_from(hz).ok(),
            SamplingPolicy::Period(_) | SamplingPolicy::NoSampling => None,
        }
    }

    pub(super) fn set_name(&mut self, name: String) {
        let known = self.known_name();
        self.unit = match (self.raw.kind, known.as_str()) {
            (TYPE_SOFTWARE, "cpu-clock" | "task-clock") => "ns".into(),
            (TYPE_HARDWARE, "cycles" | "ref-cycles") => "cycles".into(),
            (TYPE_HARDWARE | TYPE_SOFTWARE, _) => known,
            _ => name.split(':').next().unwrap_or_default().into(),
        };
        self.name = name;
    }

    /// Returns the name that type and configuration imply: for files whose names are missing.
    fn known_name(&self) -> String {
        let (kind, config) = (self.raw.kind, self.raw.config);
        // On hybrid machines the upper half of a hardware event's configuration is the kind of core.
        let number = usize::try_from(config & 0xffff_ffff).unwrap_or(usize::MAX);
        let known = match kind {
            TYPE_HARDWARE => HARDWARE.get(number),
            TYPE_SOFTWARE => SOFTWARE.get(number),
            _ => None,
        };
        match known {
            Some(name) => (*name).into(),
            None if kind == TYPE_TRACEPOINT => format!("tracepoint-{config}"),
            None => format!("event-{kind}-{config:#x}"),
        }
    }
}
