//! Source lines of the function that are not available: which, why, and what to do, in one note.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use plumb_analyze::Annotation;

use crate::source::Sources;

/// Most files named in the note.
const FILES: usize = 5;
/// Most line ranges named per file.
const STRETCHES: usize = 6;

/// Returns the note, or `None` if no line of the requested files is missing.
pub(super) fn note(annotation: &Annotation, sources: &Sources) -> Option<String> {
    let mut lines: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for place in annotation.rows.iter().filter_map(|row| row.places.first()).filter(|place| place.line > 0) {
        lines.entry(&place.file).or_default().insert(place.line);
    }
    let mut gaps: Vec<(&str, BTreeSet<u32>, String)> = Vec::new();
    for (file, why) in sources.missing() {
        gaps.push((file, lines.remove(file).unwrap_or_default(), why.to_owned()));
    }
    for (file, count) in sources.lengths() {
        let is_behind = |line: &u32| usize::try_from(*line).is_ok_and(|line| line > count);
        let behind: BTreeSet<u32> = lines.remove(file).into_iter().flatten().filter(is_behind).collect();
        if !behind.is_empty() {
            gaps.push((file, behind, format!("what is there has {count} lines")));
        }
    }
    let folder = common_folder(gaps.iter().map(|(file, ..)| *file))?;
    let mut named: Vec<String> = gaps
        .iter()
        .take(FILES)
        .map(|(file, lines, why)| format!("{} of {file} ({why})", stretches(lines)))
        .collect();
    match gaps.len().saturating_sub(FILES) {
        0 => {}
        1 => named.push("lines of 1 more file".into()),
        more => named.push(format!("lines of {more} more files")),
    }
    let example = match folder {
        "" => String::new(),
        // The compiler's directory is not known; the common start of the program's paths is the best prefix to suggest.
        folder if folder.starts_with("./") => ", such as --source-map .=DIRECTORY".into(),
        folder => format!(", such as --source-map {folder}=DIRECTORY"),
    };
    let named = named.join("; ");
    Some(format!("Source:   not shown: {named}. --source-map FROM=TO says where sources are{example}"))
}

/// The lines with consecutive ones joined: `lines 3-7, 12`.
fn stretches(lines: &BTreeSet<u32>) -> String {
    let mut stretches: Vec<RangeInclusive<u32>> = Vec::new();
    for &line in lines {
        match stretches.last_mut() {
            Some(last) if *last.end() + 1 == line => *last = *last.start()..=line,
            _ => stretches.push(line..=line),
        }
    }
    let text = |stretch: &RangeInclusive<u32>| match (stretch.start(), stretch.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    };
    let mut texts: Vec<String> = stretches.iter().take(STRETCHES).map(text).collect();
    if stretches.len() > STRETCHES {
        texts.push("…".into());
    }
    format!("{} {}", if lines.len() == 1 { "line" } else { "lines" }, texts.join(", "))
}

/// The innermost directory above all files, empty if that is the root; `None` without files.
fn common_folder<'f>(files: impl Iterator<Item = &'f str>) -> Option<&'f str> {
    let folder = |file: &'f str| file.rsplit_once('/').map_or("", |(folder, _)| folder);
    files.map(folder).reduce(|one, other| {
        let mut common = one;
        while other != common && !other.starts_with(&format!("{common}/")) {
            match common.rsplit_once('/') {
                Some((outer, _)) => common = outer,
                None => return "",
            }
        }
        common
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_a_row_are_one_stretch() {
        let text = |lines: &[u32]| stretches(&lines.iter().copied().collect());
        assert_eq!(text(&[7]), "line 7");
        assert_eq!(text(&[3, 4, 5, 12]), "lines 3-5, 12");
        assert_eq!(text(&[1, 3, 5, 7, 9, 11, 13, 15]), "lines 1, 3, 5, 7, 9, 11, …");
    }

    #[test]
    fn the_common_folder_is_one_of_whole_components() {
        let folder = |files: &[&'static str]| common_folder(files.iter().copied());
        assert_eq!(folder(&[]), None);
        assert_eq!(folder(&["/a/b/c.c"]), Some("/a/b"));
        assert_eq!(folder(&["/a/b/c.c", "/a/bc/d.c"]), Some("/a"));
        assert_eq!(folder(&["/a/b/c.c", "/a/b/e/d.c"]), Some("/a/b"));
        assert_eq!(folder(&["/a/b.c", "/c/d.c"]), Some(""));
        assert_eq!(folder(&["./string/x.c", "./elf/y.c"]), Some("."));
        assert_eq!(folder(&["x.c", "/a/y.c"]), Some(""));
    }
}
