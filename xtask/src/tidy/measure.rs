//! How large things are, of any tree of this repository: what `bench/house` compares.
//!
//! Here all is measured that `tidy` has limits for, and nothing is judged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::limits::{Measure, Measured};
use super::{circles, names, prose, siblings, source, tracked_files};

/// Words by which a test says that it skips, by one way or another.
const SKIPS: [&str; 5] = ["needs(", "skip(", "skipped", "skips", "says so and does nothing"];

/// Prints the measures of the tree at `root`, one a line: name, number, which one.
pub fn print(root: &Path) -> Result<()> {
    let files = tracked_files(root)?;
    let commands = siblings::commands(&files);
    let (mut parsed, mut measured, mut uses) = (Vec::new(), Vec::new(), BTreeSet::new());
    let (mut lines, mut tests, mut skippable) = (0, 0, 0);
    let mut comments = prose::Prose::new();
    for file in files {
        let Ok(text) = std::fs::read_to_string(root.join(&file)) else { continue };
        comments.read(&file, &text);
        if file.extension().is_none_or(|end| end != "rs") {
            continue;
        }
        let Ok(syntax) = syn::parse_file(&text) else { continue };
        let in_file = text.matches("#[test]").count();
        tests += in_file;
        if SKIPS.iter().any(|word| text.contains(word)) {
            skippable += in_file;
        }
        if !is_source(&file) {
            continue;
        }
        lines += text.lines().count();
        uses.extend(siblings::check(&file, &text, &commands).into_iter().map(|one| (one.file, one.what)));
        measured.extend(source::measure(&file, &text, &syntax));
        parsed.push((file, syntax));
    }
    measured.extend(circles::check(&parsed));
    let measures = [
        ("circle", Measure::Circle),
        ("struct", Measure::Struct),
        ("function", Measure::Function),
        ("file", Measure::File),
    ];
    for (name, measure) in measures {
        let largest = measured.iter().filter(|one| one.measure == measure).max_by_key(|one| one.size);
        line(name, largest.map_or(0, |one| one.size), &largest.map(which).unwrap_or_default());
    }
    let names: Vec<String> = names::places(&parsed).into_keys().collect();
    line("siblings", uses.len(), "");
    line("names", names.len(), &names.join(", "));
    line("lines", lines, "");
    let without_tests = |folder: &str| {
        let of = |one: &&Measured| one.measure == Measure::File && one.file.starts_with(folder);
        measured.iter().filter(of).map(|one| one.size).sum::<usize>()
    };
    line("without_tests", without_tests("crates"), "");
    line("cli_without_tests", without_tests("crates/cli/src"), "");
    line("prose", comments.findings().len(), "");
    line("tests", tests, "");
    line("skippable", skippable, "");
    Ok(())
}

/// Whether a file is code of a crate, and not its tests, examples or fuzz targets.
fn is_source(file: &Path) -> bool {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    matches!(parts[..], ["crates", _, "src", ..])
}

fn which(one: &Measured) -> String {
    let file = PathBuf::from(&one.file).display().to_string();
    match one.measure {
        Measure::Function | Measure::Struct => format!("{} in {file}", one.name),
        Measure::Circle | Measure::File => file,
    }
}

fn line(name: &str, number: usize, which: &str) {
    println!("{name}\t{number}\t{which}");
}
