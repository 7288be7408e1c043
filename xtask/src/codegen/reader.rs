//! The reader of messages, in Rust.
//!
//! A message begins with a `Head`, whose `kind` says which structure it is: that of `MESSAGE_TIME_OFF` is `TimeOff`. More bytes may
//! follow it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};

use super::model::{Field, Item, Structure};

/// How a constant is called that is a message's kind.
const KIND: &str = "MESSAGE_";
/// The structure that messages begin with.
const HEAD: &str = "Head";

/// The reader of all messages among these items.
pub fn write(sources: &str, items: &[Item]) -> Result<String> {
    let kinds: Vec<(&str, String)> = items.iter().filter_map(kind).collect();
    let structures: Vec<&Structure> = items.iter().filter_map(structure).collect();
    let find = |name: &str| structures.iter().find(|structure| structure.name == name);
    let mut wanted = BTreeSet::new();
    for (constant, name) in &kinds {
        let message = find(name).with_context(|| format!("{constant}: there is no structure {name}"))?;
        let begins =
            message.fields.first().is_some_and(|first| first.element == HEAD && first.count.is_none());
        ensure!(begins, "{name} does not begin with a {HEAD}");
        wanted.insert(name.as_str());
        wanted.extend(message.fields.iter().map(|field| field.element.as_str()));
    }
    let mut out = format!(
        "//! Messages from the bytes of a ring. Made of {sources}: `cargo run -p xtask -- codegen`.\n//!\n\
         //! Not here: what they mean.\n\n"
    );
    let names: Vec<&str> =
        kinds.iter().flat_map(|(constant, name)| [*constant, name]).chain([HEAD]).collect();
    let _ = writeln!(out, "use super::{{{}}};\n", names.join(", "));
    out.push_str("/// A message.\n#[derive(Clone, Copy, Debug)]\n#[allow(clippy::large_enum_variant, reason = \"read at once, kept nowhere\")]\npub enum Received {\n");
    for (_, name) in &kinds {
        let _ = writeln!(out, "/// [`{name}`].\n{name}({name}),");
    }
    out.push_str("}\n\nimpl Received {\n/// Reads a message off the front of `bytes`, which are left with what follows it. `None`: it is of no kind \
                  that is known, or cut off.\npub fn take(bytes: &mut &[u8]) -> Option<Self> {\n\
                  let head = Head::take(&mut &**bytes)?;\nSome(match head.kind {\n");
    for (constant, name) in &kinds {
        let _ = writeln!(out, "{constant} => Self::{name}({name}::take(bytes)?),");
    }
    out.push_str("_ => return None,\n})\n}\n}\n");
    for structure in structures.iter().filter(|structure| wanted.contains(structure.name.as_str())) {
        write_take(&mut out, structure)?;
    }
    out.push_str(
        "\n/// Takes as many bytes as an array has.\nfn array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {\n\
         let (array, rest) = bytes.split_first_chunk()?;\n*bytes = rest;\nSome(*array)\n}\n",
    );
    out.push_str(
        "\n/// Takes as many numbers as an array has.\nfn words<const N: usize>(bytes: &mut &[u8]) -> Option<[u64; N]> {\n\
         let mut words = [0; N];\nfor word in &mut words {\n*word = u64::from_ne_bytes(array(bytes)?);\n}\nSome(words)\n}\n",
    );
    Ok(out)
}

fn kind(item: &Item) -> Option<(&str, String)> {
    let Item::Constant(constant) = item else { return None };
    let words = constant.name.strip_prefix(KIND)?.split('_');
    let capital = |word: &str| word[..1].to_owned() + &word[1..].to_lowercase();
    Some((&constant.name, words.map(capital).collect()))
}

fn structure(item: &Item) -> Option<&Structure> {
    match item {
        Item::Structure(structure) => Some(structure),
        Item::Constant(_) => None,
    }
}

fn write_take(out: &mut String, Structure { name, fields, .. }: &Structure) -> Result<()> {
    let _ = writeln!(
        out,
        "\nimpl {name} {{\n/// Takes one off the front of `bytes`.\nfn take(bytes: &mut &[u8]) -> Option<Self> {{\nSome(Self {{"
    );
    for Field { name: field, element, count } in fields {
        let value = match (element.as_str(), count) {
            ("u8", Some(_)) => "array(bytes)?".into(),
            ("u64", Some(_)) => "words(bytes)?".into(),
            (_, Some(_)) => anyhow::bail!("{name}.{field}: arrays of {element} are not read"),
            ("u8" | "u16" | "u32" | "u64" | "i32" | "i64", None) => {
                format!("{element}::from_ne_bytes(array(bytes)?)")
            }
            (structure, None) => format!("{structure}::take(bytes)?"),
        };
        let _ = writeln!(out, "{field}: {value},");
    }
    out.push_str("})\n}\n}\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::model::Model;
    use super::*;

    const HEAD_SOURCE: &str = "#[repr(C)] pub struct Head { pub kind: u32 }\n";

    fn reader(source: &str) -> Result<String> {
        write("x.rs", &Model::default().read(&format!("{HEAD_SOURCE}{source}"))?)
    }

    #[test]
    fn each_kind_has_its_structure() {
        let made = reader("pub const MESSAGE_TIME_OFF: u32 = 1;\n#[repr(C)] pub struct TimeOff { pub head: Head, pub a: u32 }").unwrap();
        assert!(made.contains("MESSAGE_TIME_OFF => Self::TimeOff(TimeOff::take(bytes)?),"), "{made}");
        assert!(made.contains("a: u32::from_ne_bytes(array(bytes)?),"), "{made}");
        assert!(reader("pub const MESSAGE_NONE: u32 = 1;").is_err());
        assert!(reader("pub const MESSAGE_A: u32 = 1;\n#[repr(C)] pub struct A { pub a: u32 }").is_err());
    }
}
