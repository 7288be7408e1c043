//! A chunk's types: the fields of events and constants. Invariant: elements nest to a fixed depth.

use std::collections::HashMap;

use super::bytes::{Bytes, Text};
use crate::foreign::ForeignError;

/// Deepest nesting of the elements that describe types: root, metadata, class, field, annotation, and possible additions.
const MOST_DEEP: usize = 16;

/// The types by their ids.
#[derive(Default)]
pub(super) struct Types {
    types: HashMap<i64, Type>,
}

/// A value type.
#[derive(Debug, Default)]
pub(super) struct Type {
    pub name: String,
    pub kind: Kind,
    pub fields: Vec<Field>,
}

/// The encoding of a type's values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// An object: its fields in order.
    #[default]
    Object,
    /// An integer of this many bytes, or of variable length.
    Integer(usize),
    /// Always this many bytes.
    Fixed(usize),
    Text,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "int" => Kind::Integer(4),
            "long" => Kind::Integer(8),
            "short" | "char" => Kind::Integer(2),
            "byte" | "boolean" => Kind::Fixed(1),
            "float" => Kind::Fixed(4),
            "double" => Kind::Fixed(8),
            "java.lang.String" => Kind::Text,
            _ => Kind::Object,
        }
    }
}

/// A field of a type.
#[derive(Debug, Default)]
pub(super) struct Field {
    pub name: String,
    pub class: i64,
    /// Whether the number of a constant is stored instead of the value.
    pub constant: bool,
    pub array: bool,
}

impl Types {
    pub fn get(&self, id: i64) -> Option<&Type> {
        self.types.get(&id)
    }

    /// Reads the event that describes types, after its header.
    pub fn read(bytes: &mut Bytes<'_>) -> Result<Self, ForeignError> {
        let count = bytes.count("strings")?;
        let mut strings = Vec::with_capacity(count);
        for _ in 0..count {
            strings.push(match bytes.text()? {
                Text::Here(text) => text.into_owned(),
                Text::Null => String::new(),
                Text::Constant(_) => return Err(bytes.wrong("a name of a type is not written out")),
            });
        }
        let mut reading = Reading { strings, types: Types::default() };
        bytes.integer(4)?;
        reading.element(bytes, "root", None, 0)?;
        Ok(reading.types)
    }
}

struct Reading {
    strings: Vec<String>,
    types: Types,
}

impl Reading {
    fn string(&self, bytes: &mut Bytes<'_>) -> Result<&str, ForeignError> {
        let before = *bytes;
        let place = bytes.integer(4)?;
        let found = usize::try_from(place).ok().and_then(|place| self.strings.get(place));
        found.map(String::as_str).ok_or_else(|| before.wrong(format!("there is no string {place}")))
    }

    /// Reads an element and its children; fields are added to their type.
    fn element(
        &mut self,
        bytes: &mut Bytes<'_>,
        name: &str,
        class: Option<&mut Type>,
        depth: usize,
    ) -> Result<(), ForeignError> {
        if depth > MOST_DEEP {
            return Err(bytes.wrong("descriptions of types nest too deep"));
        }
        let (mut called, mut field, mut id) = (String::new(), Field::default(), None);
        for _ in 0..bytes.count("attributes")? {
            let key = self.string(bytes)?.to_owned();
            let before = *bytes;
            let value = self.string(bytes)?;
            let number = || {
                value.parse::<i64>().map_err(|_| before.wrong(format!("{key} is {value:?} and not a number")))
            };
            match &*key {
                "name" => called = value.to_owned(),
                "id" if name == "class" => id = Some(number()?),
                "class" if name == "field" => field.class = number()?,
                "constantPool" => field.constant = value == "true",
                "dimension" => field.array = number()? > 0,
                _ => {}
            }
        }
        let mut own = Type { kind: Kind::of(&called), ..Type::default() };
        for _ in 0..bytes.count("elements")? {
            let inner = self.string(bytes)?.to_owned();
            self.element(bytes, &inner, (name == "class").then_some(&mut own), depth + 1)?;
        }
        match (name, class, id) {
            ("field", Some(class), _) => class.fields.push(Field { name: called, ..field }),
            ("class", _, Some(id)) => _ = self.types.types.insert(id, Type { name: called, ..own }),
            _ => {}
        }
        Ok(())
    }
}
