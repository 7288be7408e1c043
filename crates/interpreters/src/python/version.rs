//! Detects the version of CPython in a file, and the offsets of its structures.

use super::layout::{self, PythonLayout};
use super::offsets;
use crate::image::{Image, Wanted};

pub(super) const RUNTIME: &str = "_PyRuntime";
pub(super) const LOOP: &str = "_PyEval_EvalFrameDefault";
/// Rarely executed part of the loop that a compiler placed elsewhere.
pub(super) const COLD_LOOP: &str = "_PyEval_EvalFrameDefault.cold";

/// `PY_VERSION_HEX`, since 3.11.
const VERSION: &str = "Py_Version";

/// Functions, with the minor version of Python 3 that introduced each, newest first.
const FIRSTS: [(&str, u8); 5] = [
    ("PyIter_Send", 10),
    ("PyFrame_GetBack", 9),
    ("PyCode_NewWithPosOnlyArgs", 8),
    ("PyInterpreterState_GetID", 7),
    ("_PyEval_EvalFrameDefault", 6),
];

/// Symbols to search for in a file.
pub(super) const SYMBOLS: &[Wanted] = &[
    Wanted { name: RUNTIME, bytes: offsets::SIZE },
    Wanted { name: VERSION, bytes: 4 },
    Wanted { name: LOOP, bytes: 0 },
    Wanted { name: COLD_LOOP, bytes: 0 },
    Wanted { name: FIRSTS[0].0, bytes: 0 },
    Wanted { name: FIRSTS[1].0, bytes: 0 },
    Wanted { name: FIRSTS[2].0, bytes: 0 },
    Wanted { name: FIRSTS[3].0, bytes: 0 },
];

/// A version of CPython.
pub(super) struct Version {
    /// Version text, as far as the file has it: 3.11.7, or 3.10.
    pub(super) text: String,
    /// Offsets of its structures, or `None` if the version is not supported.
    pub(super) layout: Option<PythonLayout>,
}

/// The version of CPython in a file, or `None` if the file has no CPython.
pub(super) fn of(image: &Image) -> Option<Version> {
    let Some(version) = image.number(VERSION) else {
        let (_, minor) = *FIRSTS.iter().find(|(name, _)| image.address(name).is_some())?;
        return Some(Version { text: format!("3.{minor}"), layout: layout::of(minor).copied() });
    };
    let [_, micro, minor, major] = version.to_le_bytes();
    let text = format!("{major}.{minor}.{micro}");
    if major != 3 {
        return Some(Version { text, layout: None });
    }
    let table = image.content(RUNTIME).unwrap_or_default();
    if minor >= 13 && offsets::is_free_threaded(table) {
        return Some(Version { text: format!("{text} without the global lock"), layout: None });
    }
    let layout = layout::of(minor).copied().or_else(|| offsets::read(table, version));
    Some(Version { text, layout })
}

/// Since 3.12, Python itself makes a named stub for each function with `-X perf`. Returns how to run the recorded Python, if its version does.
pub(super) fn with_stubs(files: &[&str]) -> Option<String> {
    files.iter().find_map(|name| {
        let version = name.strip_prefix("lib").unwrap_or(name).strip_prefix("python3.")?;
        let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
        (digits.parse::<u32>().ok()? >= 12).then(|| format!("run it with python3.{digits} -X perf"))
    })
}
