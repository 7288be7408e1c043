//! Values of functions in a store's profiles, and of their callers and callees.
//!
//! Elsewhere: the tables of one recording (`table`).

use serde::{Deserialize, Serialize};

/// Functions, largest self value first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FunctionValues {
    /// Value of all samples.
    pub total: i64,
    /// Number of functions, of which `rows` may have a part.
    pub functions: usize,
    /// The functions.
    pub rows: Vec<FunctionValue>,
}

/// The values of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionValue {
    /// Name.
    pub function: String,
    /// Self value.
    #[serde(rename = "self")]
    pub own: i64,
    /// Total value, callees included.
    pub total: i64,
}

/// A function that calls another, or is called by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallValue {
    /// Name; empty: none, the other is the outermost frame.
    pub function: String,
    /// Total value below these calls.
    pub total: i64,
}

/// The callers and callees of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeighbourValues {
    /// Self value.
    #[serde(rename = "self")]
    pub own: i64,
    /// Total value, callees included.
    pub total: i64,
    /// Functions that call it.
    pub callers: Vec<CallValue>,
    /// Functions that it calls.
    pub callees: Vec<CallValue>,
}
