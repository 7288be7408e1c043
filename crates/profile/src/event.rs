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
