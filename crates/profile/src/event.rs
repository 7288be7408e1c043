//! The events that trigger samples.

use crate::strings::StringId;
use crate::table::id;

id!(
    /// A sampled event.
    EventId
);

/// One sampled event, such as `cpu-clock`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Name as perf prints it.
    pub name: StringId,
    /// Unit of a sample's weight: `ns`, `cycles`, or the event's own name.
    pub unit: StringId,
}

impl Event {
    /// Name of the event of blocked time: from the sample's time on, for its weight in nanoseconds.
    pub const OFF_CPU: &str = "off-cpu";
    /// Name of the event of run-queue wait.
    pub const RUN_QUEUE: &str = "run-queue";
    /// Names of the events of off-CPU time.
    pub const WAITS: [&str; 2] = [Self::OFF_CPU, Self::RUN_QUEUE];
}
