//! The kinds of samples: their event names in the file, and in a profile.

/// The kind of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JfrEvent {
    /// A thread that ran: `jdk.ExecutionSample`.
    Cpu,
    /// A running thread, sampled by a counter that does not measure time, in async-profiler's files.
    Counter,
    /// A thread in native code, running or blocked: `jdk.NativeMethodSample`.
    NativeMethod,
    /// A thread, running or not: `profiler.WallClockSample`.
    Wall,
    /// An allocation that took a new thread-local buffer.
    AllocInNewTlab,
    /// An allocation outside of these buffers.
    AllocOutsideTlab,
    /// A sampled allocation: `jdk.ObjectAllocationSample`.
    AllocSample,
    /// A wait for a monitor.
    MonitorEnter,
    /// A parked thread.
    Park,
}

impl JfrEvent {
    /// Returns the kind for an event type.
    pub(super) fn of(class: &str) -> Option<Self> {
        Some(match class {
            "jdk.ExecutionSample" => Self::Cpu,
            "jdk.NativeMethodSample" => Self::NativeMethod,
            "profiler.WallClockSample" => Self::Wall,
            "jdk.ObjectAllocationInNewTLAB" => Self::AllocInNewTlab,
            "jdk.ObjectAllocationOutsideTLAB" => Self::AllocOutsideTlab,
            "jdk.ObjectAllocationSample" => Self::AllocSample,
            "jdk.JavaMonitorEnter" => Self::MonitorEnter,
            "jdk.ThreadPark" => Self::Park,
            _ => return None,
        })
    }

    /// Returns the event's name and unit in a profile; a counter has its own.
    pub(super) fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::Cpu => ("cpu-clock", "ns"),
            Self::Counter => ("counter", ""),
            Self::NativeMethod => ("native-method", "ns"),
            Self::Wall => ("wall", "ns"),
            Self::AllocInNewTlab => ("alloc-in-new-tlab", "bytes"),
            Self::AllocOutsideTlab => ("alloc-outside-tlab", "bytes"),
            Self::AllocSample => ("alloc-sample", "bytes"),
            Self::MonitorEnter => ("monitor-enter", "ns"),
            Self::Park => ("thread-park", "ns"),
        }
    }

    /// Returns the field with the weight; `None` if a setting has it.
    pub(super) fn weight(self) -> Option<&'static str> {
        match self {
            Self::Cpu | Self::Counter | Self::NativeMethod | Self::Wall => None,
            Self::AllocInNewTlab => Some("tlabSize"),
            Self::AllocOutsideTlab => Some("allocationSize"),
            Self::AllocSample => Some("weight"),
            Self::MonitorEnter | Self::Park => Some("duration"),
        }
    }

    /// Whether the weight is a time by the chunk's clock.
    pub(super) fn is_wait(self) -> bool {
        matches!(self, Self::MonitorEnter | Self::Park)
    }
}
