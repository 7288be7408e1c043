//! Limits of an answer, so that a large selection is answered in part and says so.

use serde::{Deserialize, Serialize};

/// The reason why not everything was examined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum BoundReason {
    /// The selection has too many rows (stacks of profiles): whole profiles were sampled, spread over the time range.
    Rows,
    /// The selection has too many stacks: those with the most time were used.
    Stacks,
    /// The selection has too many samples: their number was reduced, and the time was not.
    Samples,
    /// Time ran out: services with less CPU time were not examined.
    Time,
    /// A service needs more memory than a query may use: it was not examined.
    #[default]
    Memory,
}

/// The part that was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AnswerBound {
    /// The reason.
    // A newer server may have more of them.
    #[serde(skip_deserializing)]
    pub reason: BoundReason,
    /// The service affected; `None` for all.
    pub service: Option<String>,
    /// Number used.
    pub taken: u64,
    /// Total number.
    pub of: u64,
    /// The limit as a sentence.
    pub says: String,
}

impl AnswerBound {
    /// Creates it for `taken` items out of `of`.
    pub fn new(reason: BoundReason, taken: u64, of: u64) -> Self {
        let says = match reason {
            BoundReason::Rows => {
                format!(
                    "{taken} of {of} rows were read, of profiles spread over the time; a shorter time has all"
                )
            }
            BoundReason::Stacks => format!("the {taken} stacks with the most time were examined, of {of}"),
            BoundReason::Samples => {
                format!("{of} samples were thinned to about {taken}: intervals are wider")
            }
            BoundReason::Time => {
                format!(
                    "{taken} of {of} services were examined in the time that a query has; select fewer or a shorter time"
                )
            }
            BoundReason::Memory => {
                "not examined: its profiles take more memory than a query may; select a shorter time"
                    .to_owned()
            }
        };
        Self { reason, service: None, taken, of, says }
    }

    /// Restricts it to one service.
    #[must_use]
    pub fn of_service(self, service: &str) -> Self {
        Self { service: Some(service.to_owned()), ..self }
    }
}
