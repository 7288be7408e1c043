//! What all advice says to programs, whatever its rule goes by: what was seen, measured and is to be done.
//!
//! Not here: what the gain is counted in, which is the caller's.

use plumb_analyze::{Measure, Rule};
use serde_json::{Map, Value, json};

/// The fields of a rule that holds; the caller adds what is bounded.
pub fn fields(about: &str, rule: &Rule, measured: &[Measure]) -> Map<String, Value> {
    let measured: Vec<Value> =
        measured.iter().map(|one| json!({"what": one.what, "value": one.value, "unit": one.unit})).collect();
    Map::from_iter([
        ("rule".into(), rule.name.into()),
        ("about".into(), about.into()),
        ("pattern".into(), rule.pattern.into()),
        ("threshold".into(), rule.threshold.into()),
        ("remedy".into(), rule.remedy.into()),
        ("bound".into(), rule.bound.into()),
        ("source".into(), rule.source.into()),
        ("measured".into(), measured.into()),
    ])
}
