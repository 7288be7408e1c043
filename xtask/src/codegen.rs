//! The C header of what programs in the kernel share with the recorder, from its Rust source.
//!
//! `codegen` writes it, `codegen --check` says whether it is what the source gives. The source holds only constants and
//! `#[repr(C)]` structures, one item or field a line: anything else is an error, not a guess.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Where sources and headers are.
const CRATE: &str = "crates/capture-bpf";
/// The sources and their headers.
const HEADERS: [(&str, &str); 3] = [
    ("src/wire.rs", "bpf/wire.h"),
    ("src/calls/wire.rs", "bpf/calls.h"),
    ("src/callsums/wire.rs", "bpf/callsums.h"),
];

/// Writes the headers, or compares.
pub fn run(root: &Path, check: bool) -> Result<()> {
    for (source, name) in HEADERS {
        let text = std::fs::read_to_string(root.join(CRATE).join(source)).context(source)?;
        let header = header(source, &text).context(source)?;
        let path = root.join(CRATE).join(name);
        if !check {
            std::fs::write(path, header).context(name)?;
        } else if std::fs::read_to_string(path).context(name)? != header {
            bail!("{CRATE}/{name} is not what {source} gives: cargo run -p xtask -- codegen");
        }
    }
    Ok(())
}

/// Size and alignment of what is known so far.
type Sizes = HashMap<String, (usize, usize)>;

fn header(path: &str, source: &str) -> Result<String> {
    let guard = path.trim_start_matches("src/").trim_end_matches(".rs").replace('/', "_").to_uppercase();
    let mut out = format!(
        "/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */\n\
         /* Made of {path}, which says what all this means: cargo run -p xtask -- codegen */\n\
         #ifndef PLUMB_{guard}_H\n#define PLUMB_{guard}_H\n\n",
    );
    let integers = [("u8", 1), ("u16", 2), ("u32", 4), ("u64", 8), ("i32", 4), ("i64", 8)];
    let mut sizes: Sizes = integers.iter().map(|&(name, size)| (name.into(), (size, size))).collect();
    let mut constants = HashMap::new();
    let mut lines = source.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with("//") || line.starts_with("#[") {
            continue;
        }
        if let Some(rest) = line.strip_prefix("pub const ") {
            constant(rest, &mut constants, &mut out)?;
        } else if let Some(name) = line.strip_prefix("pub struct ").and_then(|rest| rest.strip_suffix(" {")) {
            structure(name, &mut lines, &constants, &mut sizes, &mut out)?;
        } else {
            bail!("can't be said in C: {line}");
        }
    }
    out.push_str("\n#endif\n");
    Ok(out)
}

fn constant(rest: &str, constants: &mut HashMap<String, usize>, out: &mut String) -> Result<()> {
    let parsed = rest.strip_suffix(';').and_then(|rest| {
        let (name, rest) = rest.split_once(": ")?;
        let (kind, value) = rest.split_once(" = ")?;
        let number = match value.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok()?,
            None => value.parse().ok()?,
        };
        Some((name, kind, value, number))
    });
    let (name, kind, value, number) = parsed.with_context(|| format!("no number: {rest}"))?;
    let suffix = if kind == "u64" { "ull" } else { "u" };
    writeln!(out, "#define {name} {value}{suffix}")?;
    constants.insert(name.into(), usize::try_from(number).unwrap_or(usize::MAX));
    Ok(())
}

fn structure<'a>(
    name: &str,
    lines: &mut impl Iterator<Item = &'a str>,
    constants: &HashMap<String, usize>,
    sizes: &mut Sizes,
    out: &mut String,
) -> Result<()> {
    let (mut offset, mut alignment) = (0_usize, 1);
    writeln!(out, "\nstruct {name} {{")?;
    for line in lines.by_ref().take_while(|&line| line != "}").filter(|line| !line.starts_with("//")) {
        let field = line.strip_prefix("pub ").and_then(|rest| rest.strip_suffix(',')?.split_once(": "));
        let (field, kind) = field.with_context(|| format!("no field: {line}"))?;
        let (element, count) = match kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
            Some(array) => array.split_once("; ").with_context(|| line.to_owned())?,
            None => (kind, ""),
        };
        let count = count.trim_end_matches(" as usize");
        let length = match (count, constants.get(count)) {
            ("", _) => 1,
            (_, Some(&length)) => length,
            _ => count.parse().with_context(|| line.to_owned())?,
        };
        let &(size, align) = sizes.get(element).with_context(|| format!("what is {element}?"))?;
        if offset % align != 0 {
            bail!("{name}.{field} has padding before it");
        }
        offset += size * length;
        alignment = alignment.max(align);
        let kind = match element {
            "i32" => "s32".into(),
            "i64" => "s64".into(),
            "u8" | "u16" | "u32" | "u64" => element.to_owned(),
            _ => format!("struct {element}"),
        };
        let array = if count.is_empty() { String::new() } else { format!("[{count}]") };
        writeln!(out, "    {kind} {field}{array};")?;
    }
    if offset % alignment != 0 {
        bail!("{name} has padding at its end");
    }
    writeln!(out, "}};\n_Static_assert(sizeof(struct {name}) == {offset}, \"{name}\");")?;
    sizes.insert(name.into(), (offset, alignment));
    Ok(())
}
