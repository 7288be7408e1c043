//! Labels: names and values that identify a series of profiles.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use foldhash::fast::RandomState;
use serde::{Deserialize, Serialize};

/// Label with the kind of a profile, such as `process_cpu`.
pub const NAME: &str = "__name__";
/// Label with the whole profile type: [`NAME`], type, unit, period type and period unit, separated by colons.
pub const PROFILE_TYPE: &str = "__profile_type__";
/// Label with the profiled service.
pub const SERVICE: &str = "service_name";

/// Names with values, sorted by name, without duplicate names or empty values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Labels(Vec<(Arc<str>, Arc<str>)>);

impl Labels {
    /// Builds labels. The last value of a repeated name is kept; an empty value removes the name.
    pub fn new<N: Into<Arc<str>>, V: Into<Arc<str>>>(labels: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut sorted = Self::default();
        for (name, value) in labels {
            sorted.set(name, value);
        }
        sorted
    }

    /// Sets the value of a name; an empty value removes the name.
    pub fn set(&mut self, name: impl Into<Arc<str>>, value: impl Into<Arc<str>>) {
        let (name, value) = (name.into(), value.into());
        match self.0.binary_search_by(|(other, _)| other.cmp(&name)) {
            Ok(place) if value.is_empty() => {
                self.0.remove(place);
            }
            Ok(place) => self.0[place].1 = value,
            Err(_) if value.is_empty() => {}
            Err(place) => self.0.insert(place, (name, value)),
        }
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let place = self.0.binary_search_by(|(other, _)| (**other).cmp(name)).ok()?;
        Some(&self.0[place].1)
    }

    /// Names with values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The labels with the given names.
    pub fn only(&self, names: &[String]) -> Self {
        Self(self.0.iter().filter(|(name, _)| names.iter().any(|one| **one == **name)).cloned().collect())
    }

    /// Number of labels.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the set of labels is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Names and values of many series, each kept once.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelTexts {
    texts: HashSet<Arc<str>, RandomState>,
    bytes: usize,
}

impl LabelTexts {
    /// The text; the same allocation for equal texts.
    pub fn shared(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.bytes += text.len() + 2 * size_of::<usize>();
        self.texts.insert(new.clone());
        new
    }

    /// Labels that share these texts.
    pub fn of(&mut self, labels: &Labels) -> Labels {
        Labels(labels.iter().map(|(name, value)| (self.shared(name), self.shared(value))).collect())
    }

    /// Bytes of all texts.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("{")?;
        for (place, (name, value)) in self.iter().enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            write!(out, "{comma}{name}={value:?}")?;
        }
        out.write_str("}")
    }
}

/// Meaning of a series' values: `process_cpu:cpu:nanoseconds:cpu:nanoseconds`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfileType {
    /// The kind of profile, such as `process_cpu` or `memory`.
    pub name: String,
    /// Quantity that values count, such as `cpu` or `alloc_space`.
    pub sample_type: String,
    /// Unit of the values, such as `nanoseconds` or `bytes`.
    pub sample_unit: String,
    /// Quantity of the sampling period.
    pub period_type: String,
    /// Unit of the sampling period.
    pub period_unit: String,
}

impl ProfileType {
    /// Parses the form that [`fmt::Display`] writes; a sixth part, `delta`, is ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let [name, sample_type, sample_unit, period_type, period_unit] = match parts[..] {
            [a, b, c, d, e] => [a, b, c, d, e],
            [a, b, c, d, e, "delta"] => [a, b, c, d, e],
            _ => return None,
        }
        .map(str::to_owned);
        Some(Self { name, sample_type, sample_unit, period_type, period_unit })
    }

    /// The numbers of samples of CPU time, from a sampler that has a clock.
    pub fn cpu_samples() -> Self {
        let [name, sample_type, sample_unit] = ["process_cpu", "samples", "count"].map(str::to_owned);
        let [period_type, period_unit] = ["cpu", "nanoseconds"].map(str::to_owned);
        Self { name, sample_type, sample_unit, period_type, period_unit }
    }

    /// The type of the numbers of samples beside these values; `None` if they are not a clock's.
    pub fn sample_count(&self) -> Option<Self> {
        let is_clock = self.sample_type == "cpu" && self.sample_unit == "nanoseconds";
        let Self { sample_type, sample_unit, .. } = Self::cpu_samples();
        is_clock.then(|| Self { sample_type, sample_unit, ..self.clone() })
    }

    /// Sets the labels of the profile type.
    pub fn label(&self, labels: &mut Labels) {
        labels.set(NAME, &*self.name);
        labels.set("__type__", &*self.sample_type);
        labels.set("__unit__", &*self.sample_unit);
        labels.set("__period_type__", &*self.period_type);
        labels.set("__period_unit__", &*self.period_unit);
        labels.set(PROFILE_TYPE, self.to_string());
    }
}

impl fmt::Display for ProfileType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, sample_type, sample_unit, period_type, period_unit } = self;
        write!(out, "{name}:{sample_type}:{sample_unit}:{period_type}:{period_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_and_unique() {
        let labels = Labels::new([("b", "1"), ("a", "2"), ("b", "3"), ("c", "x"), ("c", "")]);
        assert_eq!(labels.to_string(), r#"{a="2", b="3"}"#);
        assert_eq!((labels.get("b"), labels.get("c"), labels.len()), (Some("3"), None, 2));
    }

    #[test]
    fn a_profile_type_survives_its_text() {
        let text = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
        assert_eq!(ProfileType::parse(text).map(|one| one.to_string()).as_deref(), Some(text));
        assert_eq!(ProfileType::parse(&format!("{text}:delta")), ProfileType::parse(text));
        assert_eq!(ProfileType::parse("cpu"), None);
        assert_eq!(ProfileType::parse(&format!("{text}:more")), None);
    }
}
