//! The C header of what programs in the kernel share with the recorder.

use std::fmt::Write as _;

use super::model::{Constant, Field, Item, Structure};

/// The header with these items. `guard`: what its include guard is called after; `sources`: what it is made of.
pub fn write(guard: &str, sources: &str, items: &[Item]) -> String {
    let mut out = format!(
        "/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */\n\
         /* Made of {sources}, where it is said what all this means: cargo run -p xtask -- codegen */\n\
         #ifndef PLUMB_{guard}_H\n#define PLUMB_{guard}_H\n\n",
    );
    for item in items {
        match item {
            Item::Constant(Constant { name, kind, text }) => {
                let suffix = if kind == "u64" { "ull" } else { "u" };
                let _ = writeln!(out, "#define {name} {text}{suffix}");
            }
            Item::Structure(structure) => write_structure(&mut out, structure),
        }
    }
    out.push_str("\n#endif\n");
    out
}

fn write_structure(out: &mut String, Structure { name, fields, size }: &Structure) {
    let _ = writeln!(out, "\nstruct {name} {{");
    for Field { name, element, count } in fields {
        let kind = match element.as_str() {
            "i32" => "s32".into(),
            "i64" => "s64".into(),
            "u8" | "u16" | "u32" | "u64" => element.clone(),
            _ => format!("struct {element}"),
        };
        let array = count.as_ref().map_or(String::new(), |count| format!("[{count}]"));
        let _ = writeln!(out, "    {kind} {name}{array};");
    }
    let _ = writeln!(out, "}};\n_Static_assert(sizeof(struct {name}) == {size}, \"{name}\");");
}
