//! The supported languages.

use std::fs::File;

use crate::image::{self, Image};
use crate::interpreter::Detected;
use crate::language::Language;
use crate::{hotspot, perl, php, python, ruby, v8};

/// The supported languages, in the order in which their interpreters are searched for in a file.
pub static LANGUAGES: [&Language; 6] =
    [&python::LANGUAGE, &php::LANGUAGE, &ruby::LANGUAGE, &perl::LANGUAGE, &v8::LANGUAGE, &hotspot::LANGUAGE];

/// The language whose interpreter's evaluation loop is the native function `name`.
pub fn language_of_loop(name: &str) -> Option<&'static Language> {
    LANGUAGES.into_iter().find(|language| language.native_loop == Some(name))
}

/// The names of all languages in a sentence.
pub fn language_names() -> String {
    enumerate(LANGUAGES.map(|language| language.name))
}

/// The supported versions of all languages in a sentence.
pub fn language_versions() -> String {
    enumerate(LANGUAGES.map(|language| language.versions))
}

fn enumerate<const N: usize>(words: [&str; N]) -> String {
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => words.concat(),
    }
}

/// Whether a file of this name may contain an interpreter and is worth searching. A program's own executable should always be
/// searched: an interpreter may be linked into it.
pub fn is_likely(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let is_named = |text: &str| name.starts_with(text.as_bytes());
    let in_library =
        |text: &str| name.strip_prefix(b"lib").is_some_and(|name| name.starts_with(text.as_bytes()));
    LANGUAGES.iter().any(|language| {
        let mut programs = language.command.programs.iter();
        programs.any(|program| is_named(program) || in_library(program))
            || language.files.iter().any(|file| is_named(file))
    })
}

/// Finds the interpreter in a file, if there is one, by its dynamic symbols.
/// `all_symbols`: also by the full symbol table, which may be large.
pub fn find(file: &File, all_symbols: bool) -> Option<Detected> {
    let image = Image::read(file, &LANGUAGES.map(|language| language.symbols), all_symbols)?;
    LANGUAGES.iter().find_map(|language| (language.find)(&image, file))
}

/// The difference (wrapping) between addresses in a process that maps this part of the file and addresses that the file states.
pub fn bias(file: &File, mapped: crate::Mapped) -> Option<u64> {
    image::bias(file, mapped)
}
