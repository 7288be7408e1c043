//! Peculiarities of the messages in JSON: 64-bit numbers are text or numbers, and a value has its kind as its name.
//!
//! <https://protobuf.dev/programming-guides/json>, <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

use std::str::FromStr;

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};

use super::message::{AnyValue, OneValue};

/// A whole number in JSON: text or number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Whole<'t> {
    Text(#[serde(borrow)] std::borrow::Cow<'t, str>),
    Positive(u64),
    Negative(i64),
}

impl Whole<'_> {
    fn number<T: FromStr + TryFrom<u64> + TryFrom<i64>, E: Error>(&self) -> Result<T, E> {
        let (number, unexpected) = match self {
            Self::Text(text) => (text.parse().ok(), Unexpected::Str(text)),
            Self::Positive(number) => (T::try_from(*number).ok(), Unexpected::Unsigned(*number)),
            Self::Negative(number) => (T::try_from(*number).ok(), Unexpected::Signed(*number)),
        };
        number.ok_or_else(|| E::invalid_value(unexpected, &"a whole number of 64 bits, or its text"))
    }
}

/// Reads a number of 64 bits.
pub(super) fn wide<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr + TryFrom<u64> + TryFrom<i64>,
{
    Whole::deserialize(from)?.number()
}

/// Reads numbers of 64 bits.
pub(super) fn wides<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr + TryFrom<u64> + TryFrom<i64>,
{
    Vec::<Whole<'_>>::deserialize(from)?.iter().map(Whole::number).collect()
}

/// The value kinds that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kinds<'t> {
    string_value: Option<String>,
    #[serde(borrow)]
    int_value: Option<Whole<'t>>,
    string_value_strindex: Option<i32>,
}

impl<'de> Deserialize<'de> for AnyValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let kinds = Kinds::deserialize(from)?;
        let value = match (kinds.string_value, kinds.int_value) {
            (Some(text), _) => Some(OneValue::Text(text)),
            (None, Some(number)) => Some(OneValue::Number(number.number()?)),
            (None, None) => kinds.string_value_strindex.map(OneValue::TextIndex),
        };
        Ok(Self { value })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::super::message::{OtlpSample, Resource};
    use super::*;

    #[test]
    fn wide_numbers_are_text_or_numbers() {
        let sample: OtlpSample = serde_json::from_str(
            r#"{"stackIndex": 3, "values": ["-5", 6], "timestampsUnixNano": ["1795389518447273711", 7], "linkIndex": 0}"#,
        )
        .unwrap();
        let wanted = OtlpSample {
            stack_index: 3,
            values: vec![-5, 6],
            timestamps_unix_nano: vec![1_795_389_518_447_273_711, 7],
            ..OtlpSample::default()
        };
        assert_eq!(sample, wanted);
        for wrong in [r#"{"values": ["x"]}"#, r#"{"timestampsUnixNano": [-1]}"#, r#"{"values": [1.5]}"#] {
            assert!(serde_json::from_str::<OtlpSample>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_value_says_its_kind() {
        let resource: Resource = serde_json::from_str(
            r#"{"attributes": [{"key": "a", "value": {"stringValue": "x\n"}}, {"key": "b", "value": {"intValue": "6022"}}, {"key": "c", "value": {"boolValue": true}}, {"keyStrindex": 4, "value": {"stringValueStrindex": 5}}]}"#,
        )
        .unwrap();
        assert_eq!(resource.attributes[3].key_strindex, 4);
        let values: Vec<Option<OneValue>> =
            resource.attributes.into_iter().map(|one| one.value.unwrap().value).collect();
        let text = Some(OneValue::Text("x\n".into()));
        assert_eq!(values, [text, Some(OneValue::Number(6022)), None, Some(OneValue::TextIndex(5))]);
    }
}
