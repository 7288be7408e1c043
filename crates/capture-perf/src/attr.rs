//! The request to the kernel: the sampled event, and the fields of each record.
//!
//! Field by field as in `struct perf_event_attr` (include/uapi/linux/perf_event.h, perf_event_open(2)).

use std::ops::Range;
use std::sync::Arc;

use linux_perf_event_reader::{
    BranchSampleFormat, Endianness, ReadFormat, RecordIdParseInfo, RecordParseInfo, SampleFormat,
};
use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_SW_BPF_OUTPUT, PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_DUMMY,
    PERF_FORMAT_LOST, PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING, PERF_TYPE_HARDWARE,
    PERF_TYPE_SOFTWARE, perf_event_attr,
};
use plumb_capture_api::SamplingRate;
use plumb_unwind::{LinuxRegisters, Native};

use crate::trigger::Trigger;

/// The largest stack copy: `sample_stack_user` has to be below 64 KiB and a multiple of 8.
pub const MAX_STACK_COPY: u32 = 65528;

/// User registers in each sample.
const USER_REGISTERS: u64 = Native::PERF_MASK;

const SAMPLE: SampleFormat = SampleFormat::IP
    .union(SampleFormat::TID)
    .union(SampleFormat::TIME)
    .union(SampleFormat::CALLCHAIN)
    .union(SampleFormat::CPU)
    .union(SampleFormat::PERIOD)
    .union(SampleFormat::REGS_USER)
    .union(SampleFormat::STACK_USER);

/// The event that triggers samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counter {
    /// CPU cycles, from the hardware counters.
    Cycles,
    /// A kernel timer that runs while the target does: the default.
    CpuClock,
    /// Any other event.
    Trigger(Arc<Trigger>),
}

impl Counter {
    /// Name as perf prints it.
    pub fn name(&self) -> &str {
        match self {
            Counter::Cycles => "cycles",
            Counter::CpuClock => "cpu-clock",
            Counter::Trigger(trigger) => trigger.name(),
        }
    }

    /// Unit of a sample's period.
    pub fn unit(&self) -> &str {
        match self {
            Counter::Cycles => "cycles",
            Counter::CpuClock => "ns",
            Counter::Trigger(trigger) => trigger.unit(),
        }
    }

    /// Whether the event is a tracepoint or a function.
    pub fn is_place(&self) -> bool {
        self.trigger().is_some_and(Trigger::is_place)
    }

    /// Whether a [`KernelUnwinder`](plumb_capture_api::KernelUnwinder) can take its samples itself. The unwinder sees where user code
    /// was left, and runs nowhere else.
    pub(crate) fn is_watchable(&self, code: Code) -> bool {
        let of_function = |trigger: &Trigger| trigger.tracepoint().is_none();
        self.is_place()
            && (code == Code::All || code == Code::User && self.trigger().is_some_and(of_function))
    }

    /// Whether its samples can interrupt the handling of another event's sample. The kernel then calls no program for them, and silently drops
    /// them if the event has one (bpf_overflow_handler in kernel/events/core.c).
    pub(crate) fn interrupts(&self) -> bool {
        self.trigger().is_none_or(Trigger::is_hardware)
    }

    /// Whether a hardware counter counts it. These interrupts can't be masked, so that too many of them stop a machine.
    pub fn is_hardware(&self) -> bool {
        match self {
            Counter::Cycles => true,
            Counter::CpuClock => false,
            Counter::Trigger(trigger) => trigger.is_hardware(),
        }
    }

    /// The trigger of samples; `None` for clocks.
    pub fn trigger(&self) -> Option<&Trigger> {
        match self {
            Counter::Trigger(trigger) => Some(trigger),
            Counter::Cycles | Counter::CpuClock => None,
        }
    }
}

/// The code that is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Code {
    /// User code and the kernel.
    #[default]
    All,
    /// User code only.
    User,
    /// The kernel only.
    Kernel,
}

/// A sampling event to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sampling {
    pub counter: Counter,
    pub code: Code,
    /// The sampling rate.
    pub pace: SamplingRate,
    /// Count between two samples of a hardware counter at a given frequency.
    pub period: u64,
    /// Bytes of user stack with each sample.
    pub stack_copy: u32,
    /// Stacks are copied, and no program handles the samples.
    pub is_copied: bool,
    /// Whether children and new threads are counted too.
    pub inherit: bool,
    /// Whether the event itself counts lost records (kernel 6.0 and newer).
    pub count_lost: bool,
    /// Role among the events of the recording.
    pub part: Part,
    /// Set if a program takes its samples and writes records through this event.
    pub copier: Option<Copier>,
}

/// An event that never fires. A program writes records through it, as the original event would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copier {
    /// The functions through which the program is called: kernel stacks in its records begin with them. `None`: no kernel stacks.
    pub way_in: Option<Arc<[Range<u64>]>>,
    /// The program asks whether the event is running: only pinned events report that.
    pub is_scope: bool,
}

/// An event's role among those of a recording, which share the rings and therefore the record layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Whether this event reports mappings and processes.
    pub tells: bool,
    /// Whether samples include the event's ID.
    pub has_id: bool,
    /// Whether samples include their period. With that, the kernel's software events give a sample each time, whatever their
    /// period (perf_swevent_event in kernel/events/core.c).
    pub says_period: bool,
    /// Whether samples have space for data from a program: the weight of samples that it writes itself.
    pub has_said: bool,
}

impl Part {
    /// For a recording of one event.
    pub fn alone(counter: &Counter, pace: SamplingRate) -> Self {
        Self {
            tells: true,
            has_id: false,
            says_period: !Self::is_period_known(counter, pace),
            has_said: false,
        }
    }

    /// Whether its samples must not include their period.
    pub fn is_period_known(counter: &Counter, pace: SamplingRate) -> bool {
        let is_software =
            counter.trigger().is_some_and(|trigger| !trigger.is_hardware() && !trigger.is_measure());
        is_software && matches!(pace, SamplingRate::Period(_))
    }
}

impl Sampling {
    /// The `perf_event_attr`, disabled.
    pub fn attr(&self) -> perf_event_attr {
        let mut attr = base(self.count_lost);
        match &self.counter {
            Counter::Cycles => {
                attr.type_ = PERF_TYPE_HARDWARE;
                attr.config = PERF_COUNT_HW_CPU_CYCLES.into();
                // A halted CPU counts no cycles, and not every counter can exclude the idle task (arm64).
            }
            Counter::CpuClock => {
                attr.type_ = PERF_TYPE_SOFTWARE;
                attr.config = PERF_COUNT_SW_CPU_CLOCK.into();
                attr.set_exclude_idle(1);
            }
            Counter::Trigger(trigger) => {
                let (kind, config, place) = trigger.numbers();
                (attr.type_, attr.config) = (kind, config);
                if let Some((path, offset)) = place {
                    attr.__bindgen_anon_3.uprobe_path = path;
                    attr.__bindgen_anon_4.probe_offset = offset;
                }
            }
        }
        match (&self.counter, self.pace) {
            (Counter::CpuClock, SamplingRate::Frequency(hz)) => attr.sample_period = period_ns(hz),
            // In frequency mode the kernel starts with an interrupt per count, and where that is slow it never recovers.
            (counter, SamplingRate::Frequency(_)) if counter.is_hardware() => {
                attr.sample_period = self.period.max(1)
            }
            (_, SamplingRate::Frequency(hz)) => {
                attr.set_freq(1);
                attr.sample_freq = hz.into();
            }
            (_, SamplingRate::Period(period)) => attr.sample_period = period,
        }
        if self.counter.is_hardware() {
            attr.read_format |= u64::from(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
        }
        attr.sample_type = self.format().bits();
        attr.set_inherit(self.inherit.into());
        attr.set_exclude_kernel((self.code == Code::User).into());
        attr.set_exclude_user((self.code == Code::Kernel).into());
        attr.set_exclude_hv(1);
        attr.set_exclude_guest(1);
        if let Some(copier) = &self.copier {
            (attr.type_, attr.config) = (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT.into());
            (attr.__bindgen_anon_3, attr.__bindgen_anon_4) = Default::default();
            attr.set_freq(0);
            attr.sample_period = 1;
            attr.set_exclude_callchain_kernel(copier.way_in.is_none().into());
            attr.set_pinned(copier.is_scope.into());
        }
        // The kernel would follow frame pointers that may not exist: user stacks come from the copy.
        attr.set_exclude_callchain_user(1);
        attr.sample_regs_user = USER_REGISTERS;
        attr.sample_stack_user = self.stack_copy.min(MAX_STACK_COPY) & !7;
        // Mappings of code only: with those of data, a tree of short processes would have nine times as many.
        tell(&mut attr, self.part.tells);
        attr.set_sample_id_all(1);
        attr
    }

    /// The perf events for [`Sampling::attr`] and its second part, if any: only the first reports mappings and processes.
    pub fn attrs(&self) -> Vec<perf_event_attr> {
        let trigger = self.counter.trigger().filter(|_| self.copier.is_none());
        let other = trigger.and_then(Trigger::other_part).map(|config| {
            let mut attr = self.attr();
            attr.config = config;
            tell(&mut attr, false);
            attr
        });
        [self.attr()].into_iter().chain(other).collect()
    }

    /// The fields of each sample.
    fn format(&self) -> SampleFormat {
        let format = if self.part.says_period { SAMPLE } else { SAMPLE.difference(SampleFormat::PERIOD) };
        let format = if self.part.has_said { format | SampleFormat::RAW } else { format };
        if self.part.has_id { format | SampleFormat::IDENTIFIER } else { format }
    }

    /// Whether each occurrence is a sample, at least initially.
    pub fn is_each(&self) -> bool {
        let happens = self.counter.trigger().is_some_and(|trigger| !trigger.is_measure());
        happens && self.pace == SamplingRate::Period(1)
    }

    /// Whether programs in the kernel measure the event instead of perf.
    pub fn is_measure(&self) -> bool {
        self.counter.trigger().is_some_and(Trigger::is_measure)
    }

    /// The period of each sample, if the sample does not include it.
    pub fn period(&self) -> Option<u64> {
        match self.pace {
            _ if self.part.says_period => None,
            SamplingRate::Period(period) => Some(period),
            SamplingRate::Frequency(hz) if self.counter == Counter::CpuClock => Some(period_ns(hz)),
            // Chosen here: see `period`.
            SamplingRate::Frequency(_) => self.counter.is_hardware().then_some(self.period.max(1)),
        }
    }

    /// The layout of the event's records, which is the same for all stack sizes and all clocks.
    pub fn parse_info(&self) -> RecordParseInfo {
        parse_info(self.format())
    }
}

/// Time between two samples of [`Counter::CpuClock`].
pub(crate) fn period_ns(frequency_hz: u32) -> u64 {
    1_000_000_000 / u64::from(frequency_hz.max(1))
}

/// An event that never fires: it owns a ring, which therefore does not depend on the events that write to it.
pub(crate) fn ring_owner(watermark: usize) -> perf_event_attr {
    let mut attr = base(false);
    attr.type_ = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY.into();
    // Otherwise it would need permission to observe the kernel.
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    attr.set_watermark(1);
    attr.wakeup_watermark = u32::try_from(watermark).unwrap_or(u32::MAX);
    attr
}

/// Sets whether an event reports mappings and processes.
fn tell(attr: &mut perf_event_attr, tells: bool) {
    attr.set_mmap(tells.into());
    attr.set_mmap2(tells.into());
    attr.set_comm(tells.into());
    attr.set_comm_exec(tells.into());
    attr.set_task(tells.into());
}

/// The settings common to all events.
pub(crate) fn base(count_lost: bool) -> perf_event_attr {
    let mut attr = perf_event_attr { size: size_of::<perf_event_attr>() as u32, ..Default::default() };
    attr.set_disabled(1);
    attr.set_use_clockid(1);
    attr.clockid = libc::CLOCK_MONOTONIC;
    if count_lost {
        attr.read_format = PERF_FORMAT_LOST.into();
    }
    attr
}

fn parse_info(format: SampleFormat) -> RecordParseInfo {
    // With several events, each record has its event's ID: first in a sample, last elsewhere.
    let identifier = if format.contains(SampleFormat::IDENTIFIER) { 8 } else { 0 };
    // The sample ID at the end of every other record: tid, time, cpu, 8 bytes each.
    let (id_bytes, id_bytes_from_time) = (24 + identifier, 16 + identifier);
    // Fields before a sample's time: ip, tid.
    let before_time = 16 + identifier;
    RecordParseInfo {
        endian: if cfg!(target_endian = "little") { Endianness::LittleEndian } else { Endianness::BigEndian },
        sample_format: format,
        branch_sample_format: BranchSampleFormat::empty(),
        read_format: ReadFormat::empty(),
        common_data_offset_from_end: Some(id_bytes),
        sample_regs_user: USER_REGISTERS,
        user_regs_count: USER_REGISTERS.count_ones() as u8,
        sample_regs_intr: 0,
        intr_regs_count: 0,
        id_parse_info: RecordIdParseInfo {
            nonsample_record_id_offset_from_end: None,
            sample_record_id_offset_from_start: None,
        },
        nonsample_record_time_offset_from_end: Some(id_bytes_from_time),
        sample_record_time_offset_from_start: Some(before_time),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The layout of a clock's samples.
    pub(crate) fn parse_info() -> RecordParseInfo {
        super::parse_info(SAMPLE)
    }

    #[test]
    fn a_period_is_what_the_frequency_asks_for() {
        assert_eq!(period_ns(999), 1_001_001);
        assert_eq!(period_ns(0), 1_000_000_000);
    }

    #[test]
    fn stack_copies_are_what_the_kernel_takes() {
        let sampling = Sampling {
            counter: Counter::CpuClock,
            code: Code::All,
            pace: SamplingRate::Frequency(999),
            period: 1,
            stack_copy: u32::MAX,
            is_copied: false,
            inherit: false,
            count_lost: true,
            part: Part::alone(&Counter::CpuClock, SamplingRate::Frequency(999)),
            copier: None,
        };
        assert_eq!(sampling.attr().sample_stack_user, MAX_STACK_COPY);
        assert_eq!(Sampling { stack_copy: 1001, ..sampling.clone() }.attr().sample_stack_user, 1000);
    }
}
