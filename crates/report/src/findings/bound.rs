//! How an answer was bounded, so that a large selection is answered in part and says so.

use serde::Serialize;

/// Why not everything was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundReason {
    /// The selection has too many rows, a row being a stack of a profile: whole profiles were chosen, spread over the time.
    Rows,
    /// It has too many stacks: those with the most time were taken.
    Stacks,
    /// It has too many samples: their number was lowered, and the time was not.
    Samples,
    /// The time for the answer was over: services with less time were not examined.
    Time,
    /// A service takes more memory than a query may: it was not examined.
    Memory,
}

/// What was taken of how much.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnswerBound {
    /// Why not all.
    pub reason: BoundReason,
    /// The service that it is about; of all if there is none.
    pub service: Option<String>,
    /// How many were taken.
    pub taken: u64,
    /// Of how many.
    pub of: u64,
    /// The same as a sentence.
    pub says: String,
}

impl AnswerBound {
    /// So many were taken of so many.
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

    /// The same of one service.
    #[must_use]
    pub fn of_service(self, service: &str) -> Self {
        Self { service: Some(service.to_owned()), ..self }
    }
}
