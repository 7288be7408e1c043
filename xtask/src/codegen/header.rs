//! The C header of what programs in the kernel share with the recorder.

use std::fmt::Write as _;

use anyhow::{Result, bail};

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
            Item::Constant(constant) => write_constant(&mut out, "", constant),
            Item::Structure(structure) => write_structure(&mut out, structure),
        }
    }
    out.push_str("\n#endif\n");
    out
}

/// The header with the numbers of each interpreter, under its name, and the list of all.
pub fn write_interpreters(languages: &[(String, Vec<Item>)]) -> Result<String> {
    let mut out = "/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0 */\n\
         /* Made of crates/interpreters/src/LANGUAGE/kernel.rs, where it is said what all this means: cargo run -p xtask -- codegen */\n\
         #ifndef PLUMB_ALL_INTERPRETERS_H\n#define PLUMB_ALL_INTERPRETERS_H\n\n\
         #define EACH_INTERPRETER(DO)"
        .to_owned();
    for (name, _) in languages {
        let _ = write!(out, " DO({}, {name})", name.to_uppercase());
    }
    out.push('\n');
    for (name, items) in languages {
        out.push('\n');
        for item in items {
            let Item::Constant(constant) = item else { bail!("{name}: only numbers can be shared") };
            write_constant(&mut out, &format!("{}_", name.to_uppercase()), constant);
        }
    }
    out.push('\n');
    for (name, _) in languages {
        let _ = writeln!(out, "#include \"{name}.h\"");
    }
    out.push_str("\n#endif\n");
    Ok(out)
}

fn write_constant(out: &mut String, prefix: &str, Constant { name, kind, text }: &Constant) {
    let suffix = if kind == "u64" { "ull" } else { "u" };
    let _ = writeln!(out, "#define {prefix}{name} {text}{suffix}");
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
