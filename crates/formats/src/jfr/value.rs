//! Values as described by their types. Invariant: every value read takes at least a byte, and nests to a fixed depth, so memory is a
//! small multiple of the bytes.

use std::borrow::Cow;

use super::bytes::{Bytes, Text};
use super::types::{Field, Kind, Type, Types};
use crate::foreign::ForeignError;

/// Deepest nesting of values. Endlessly nested ones are stored as constants.
const MOST_DEEP: usize = 16;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value<'b> {
    /// A null string, or a floating-point number, which no sample needs.
    Null,
    Number(i64),
    Text(Cow<'b, str>),
    /// A constant: the id of its type, and its number.
    Constant(i64, i64),
    /// The id of its type, and the fields' values.
    Object(i64, Vec<Value<'b>>),
    Array(Vec<Value<'b>>),
}

impl<'b> Value<'b> {
    /// Reads a value of a type.
    pub fn read(types: &Types, class: i64, bytes: &mut Bytes<'b>) -> Result<Self, ForeignError> {
        read(types, class, bytes, 0)
    }

    /// Returns a field of an object.
    pub fn field(&self, types: &Types, name: &str) -> Option<&Value<'b>> {
        let Value::Object(class, values) = self else { return None };
        let place = types.get(*class)?.fields.iter().position(|field| field.name == name)?;
        values.get(place)
    }
}

fn type_of<'t>(
    types: &'t Types,
    class: i64,
    bytes: &Bytes<'_>,
    depth: usize,
) -> Result<&'t Type, ForeignError> {
    if depth > MOST_DEEP {
        return Err(bytes.wrong("values nest too deep"));
    }
    types.get(class).ok_or_else(|| bytes.wrong(format!("there is no type {class}")))
}

fn read<'b>(
    types: &Types,
    class: i64,
    bytes: &mut Bytes<'b>,
    depth: usize,
) -> Result<Value<'b>, ForeignError> {
    let one = type_of(types, class, bytes, depth)?;
    Ok(match one.kind {
        Kind::Integer(fixed) => Value::Number(bytes.integer(fixed)?),
        Kind::Fixed(1) => Value::Number(i64::from(bytes.byte()?)),
        Kind::Fixed(length) => {
            bytes.take(length)?;
            Value::Null
        }
        Kind::Text => match bytes.text()? {
            Text::Null => Value::Null,
            Text::Here(text) => Value::Text(text),
            Text::Constant(number) => Value::Constant(class, number),
        },
        Kind::Object => {
            has_bytes(one, bytes)?;
            let mut values = Vec::with_capacity(one.fields.len());
            for field in &one.fields {
                values.push(match field.array {
                    true => {
                        let elements = 0..bytes.count("elements of an array")?;
                        let elements = elements.map(|_| single(types, field, bytes, depth));
                        Value::Array(elements.collect::<Result<_, _>>()?)
                    }
                    false => single(types, field, bytes, depth)?,
                });
            }
            Value::Object(class, values)
        }
    })
}

/// Checks that each field of a type can take its byte: fields without bytes would make values endless.
fn has_bytes(one: &Type, bytes: &Bytes<'_>) -> Result<(), ForeignError> {
    if one.fields.is_empty() || one.fields.len() > bytes.left() {
        let (fields, left) = (one.fields.len(), bytes.left());
        return Err(bytes.wrong(format!("{} has {fields} fields, with {left} bytes left", one.name)));
    }
    Ok(())
}

fn single<'b>(
    types: &Types,
    field: &Field,
    bytes: &mut Bytes<'b>,
    depth: usize,
) -> Result<Value<'b>, ForeignError> {
    match field.constant {
        true => Ok(Value::Constant(field.class, bytes.integer(8)?)),
        false => read(types, field.class, bytes, depth + 1),
    }
}

/// Skips a value of a type.
pub(super) fn skip(types: &Types, class: i64, bytes: &mut Bytes<'_>) -> Result<(), ForeignError> {
    skip_in(types, class, bytes, 0)
}

fn skip_in(types: &Types, class: i64, bytes: &mut Bytes<'_>, depth: usize) -> Result<(), ForeignError> {
    let one = type_of(types, class, bytes, depth)?;
    match one.kind {
        Kind::Integer(fixed) => _ = bytes.integer(fixed)?,
        Kind::Fixed(length) => _ = bytes.take(length)?,
        Kind::Text => _ = bytes.text()?,
        Kind::Object => {
            has_bytes(one, bytes)?;
            for field in &one.fields {
                let count = if field.array { bytes.count("elements of an array")? } else { 1 };
                for _ in 0..count {
                    match field.constant {
                        true => _ = bytes.integer(8)?,
                        false => skip_in(types, field.class, bytes, depth + 1)?,
                    }
                }
            }
        }
    }
    Ok(())
}
