//! Encoding of numbers in the JSON of protocol buffers.
//!
//! <https://protobuf.dev/programming-guides/json>: 64-bit integers are strings; a reader takes both.

use std::fmt;

use serde::de::{self, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whether a field has its default value, and is omitted.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A 64-bit integer, written as a string.
pub(crate) struct Int64(pub i64);

impl Serialize for Int64 {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut digits = [0_u8; 20];
        out.serialize_str(decimal(self.0, &mut digits))
    }
}

/// The decimal digits of a number.
fn decimal(value: i64, digits: &mut [u8; 20]) -> &str {
    let mut rest = value.unsigned_abs();
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    std::str::from_utf8(&digits[at..]).unwrap_or_default()
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = f64;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a number, or a string of one")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<f64, E> {
        value.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(value), &self))
    }

    fn visit_unit<E: de::Error>(self) -> Result<f64, E> {
        Ok(0.0)
    }
}

struct IntegerVisitor;

impl Visitor<'_> for IntegerVisitor {
    type Value = i64;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("a whole number, or a string of one")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<i64, E> {
        Ok(value)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<i64, E> {
        i64::try_from(value).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<i64, E> {
        // 2^53: the largest integer range that a double holds exactly.
        if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 {
            return Ok(value as i64);
        }
        Err(E::invalid_value(de::Unexpected::Float(value), &self))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<i64, E> {
        value.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(value), &self))
    }

    fn visit_unit<E: de::Error>(self) -> Result<i64, E> {
        Ok(0)
    }
}

/// For `#[serde(with)]` of an integer.
pub(crate) mod int64 {
    use super::{Deserializer, Int64, IntegerVisitor, Serialize, Serializer};

    pub fn serialize<S: Serializer>(value: &i64, out: S) -> Result<S::Ok, S::Error> {
        Int64(*value).serialize(out)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
        from.deserialize_any(IntegerVisitor)
    }
}

/// For `#[serde(with)]` of an integer that may be missing.
pub(crate) mod optional_int64 {
    use super::{Deserializer, Int64, Serialize, Serializer, int64};

    pub fn serialize<S: Serializer>(value: &Option<i64>, out: S) -> Result<S::Ok, S::Error> {
        value.map(Int64).serialize(out)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
        int64::deserialize(from).map(Some)
    }
}

/// For `#[serde(with)]` of unsigned integers that are only written.
pub(crate) mod uint64 {
    use super::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &u64, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// For `#[serde(with)]` of many integers.
pub(crate) mod int64s {
    use super::{Deserialize, Deserializer, Int64, IntegerVisitor, SerializeSeq, Serializer};

    struct One(i64);

    impl<'de> Deserialize<'de> for One {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            from.deserialize_any(IntegerVisitor).map(One)
        }
    }

    pub fn serialize<S: Serializer>(values: &[i64], out: S) -> Result<S::Ok, S::Error> {
        let mut list = out.serialize_seq(Some(values.len()))?;
        values.iter().try_for_each(|&value| list.serialize_element(&Int64(value)))?;
        list.end()
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<i64>, D::Error> {
        let values = Vec::<One>::deserialize(from)?;
        Ok(values.into_iter().map(|one| one.0).collect())
    }
}

/// A double, without a fraction if it has none.
pub(crate) struct Double(pub f64);

impl Serialize for Double {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        if self.0.fract() == 0.0 && self.0.abs() < 9e15 {
            return out.serialize_i64(self.0 as i64);
        }
        out.serialize_f64(self.0)
    }
}

/// For `#[serde(with)]` of a double.
pub(crate) mod double {
    use super::{Deserializer, Double, NumberVisitor, Serialize, Serializer};

    pub fn serialize<S: Serializer>(value: &f64, out: S) -> Result<S::Ok, S::Error> {
        Double(*value).serialize(out)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        from.deserialize_any(NumberVisitor)
    }
}

/// For `#[serde(with)]` of many doubles that are only written.
pub(crate) mod doubles {
    use super::{Deserialize, Deserializer, Double, SerializeSeq, Serializer};

    pub fn serialize<S: Serializer>(values: &[f64], out: S) -> Result<S::Ok, S::Error> {
        let mut list = out.serialize_seq(Some(values.len()))?;
        values.iter().try_for_each(|&value| list.serialize_element(&Double(value)))?;
        list.end()
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
        Vec::deserialize(from)
    }
}

/// For `#[serde(with)]` of bytes, which are base64.
pub(crate) mod base64 {
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(bytes: &[u8], out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        let text = text.trim_end_matches('=');
        let decoded = STANDARD_NO_PAD.decode(text).or_else(|_| URL_SAFE_NO_PAD.decode(text));
        decoded.map_err(|_| de::Error::custom("invalid base64"))
    }
}

/// Declares an enumeration's fields for `#[serde(with)]`: written by name, read by name or number.
macro_rules! named_enum {
    ($module:ident, $($number:literal => $name:literal),+ $(,)?) => {
        /// For `#[serde(with)]` of the enumeration of that name.
        pub(crate) mod $module {
            use serde::{Deserialize, Deserializer, Serializer, de};

            #[derive(Deserialize)]
            #[serde(untagged)]
            enum Either {
                Number(i32),
                Name(String),
            }

            pub fn serialize<S: Serializer>(value: &i32, out: S) -> Result<S::Ok, S::Error> {
                match value {
                    $($number => out.serialize_str($name),)+
                    other => out.serialize_i32(*other),
                }
            }

            pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<i32, D::Error> {
                match Either::deserialize(from)? {
                    Either::Number(number) => Ok(number),
                    Either::Name(name) => match name.as_str() {
                        $($name => Ok($number),)+
                        other => Err(de::Error::unknown_variant(other, &[$($name),+])),
                    },
                }
            }
        }
    };
}

pub(crate) use named_enum;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Both(#[serde(with = "int64")] i64, #[serde(with = "double")] f64);

    #[test]
    fn integers_are_strings_and_read_either_way() {
        for value in [0, 7, -1, i64::MAX, i64::MIN] {
            let text = serde_json::to_string(&Int64(value)).unwrap();
            assert_eq!(text, format!("\"{value}\""));
        }
        let read: Both = serde_json::from_str(r#"["-12", "1.5"]"#).unwrap();
        assert_eq!((read.0, read.1), (-12, 1.5));
        let read: Both = serde_json::from_str("[34, 2]").unwrap();
        assert_eq!((read.0, read.1), (34, 2.0));
        assert_eq!(serde_json::to_string(&read).unwrap(), r#"["34",2]"#);
        assert!(serde_json::from_str::<Both>("[1.5, 2]").is_err());
        assert!(serde_json::from_str::<Both>(r#"["one", 2]"#).is_err());
    }
}
