//! Writes JSON in which no character controls a terminal or hides the content of a line: such characters become `\uXXXX`, which every reader decodes.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use crate::escape::is_unsafe;

/// Writes the value in one line, without a newline.
pub fn write<W: Write>(out: W, value: &(impl Serialize + ?Sized)) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Safe(CompactFormatter)))
}

/// Writes the value over several lines, indented by two spaces.
pub fn write_pretty<W: Write>(out: W, value: &(impl Serialize + ?Sized)) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Safe(PrettyFormatter::new())))
}

/// Returns the value in one line.
pub fn line(value: &(impl Serialize + ?Sized)) -> serde_json::Result<String> {
    let mut bytes = Vec::new();
    write(&mut bytes, value)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A formatter that escapes unsafe characters. serde_json itself only escapes what JSON requires.
struct Safe<F>(F);

impl<F: Formatter> Formatter for Safe<F> {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_unsafe) {
            out.write_all(&rest.as_bytes()[..at])?;
            let mut characters = rest[at..].chars();
            let mut units = [0; 2];
            for unit in characters
                .next()
                .map(|one| one.encode_utf16(&mut units))
                .iter()
                .flat_map(|units| units.iter())
            {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = characters.as_str();
        }
        out.write_all(rest.as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_key(out)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_and_nothing_unsafe_is_written() {
        let text = "\x1b[2J \u{202e}\u{7f}\u{9b} \u{e0041} \"quoted\" \\ \n ünï中文🎉";
        let value = serde_json::json!({ "name": text, text: [text, 1, 2.5, null] });
        let compact = line(&value).unwrap();
        let mut pretty = Vec::new();
        write_pretty(&mut pretty, &value).unwrap();
        let pretty = String::from_utf8(pretty).unwrap();
        assert!(!compact.contains(is_unsafe), "{compact}");
        assert!(!pretty.contains(|one| one != '\n' && is_unsafe(one)), "{pretty}");
        assert!(pretty.starts_with("{\n  \""), "{pretty}");
        for written in [compact, pretty] {
            assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), value);
        }
    }
}
