//! Fields that all advice has in JSON, whatever its rule is based on: observation, measurements and remedy.
//!
//! Elsewhere: the unit of the gain, which is the caller's.

use plumb_analyze::{Measure, Rule};
use serde_json::{Map, Value, json};

/// Returns the fields of a rule that applies; the caller adds the gain's bounds.
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
