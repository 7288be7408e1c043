//! The shape of the programs for the kernel, which are in C: how long files and functions are.
//!
//! By their layout: a function begins and ends at the left border. Headers that are made of Rust are as long as that.

use std::path::Path;

use super::limits::{Measure, Measured};

/// How a header begins that is made of Rust.
const MADE: &str = "Made of ";

/// What in a file is larger than it may be.
pub fn measure(file: &Path, text: &str) -> Vec<Measured> {
    if !file.extension().is_some_and(|extension| extension == "c" || extension == "h") {
        return Vec::new();
    }
    let is_made = text.lines().take(3).any(|line| line.contains(MADE));
    let lines = text.lines().count();
    let mut sizes = Vec::new();
    if !is_made {
        sizes.push((0, Measure::File, String::new(), lines));
    }
    let mut begin = None;
    for (index, line) in text.lines().enumerate() {
        // The name stands on the line that opens the body, or on one before if the arguments take several.
        if !line.starts_with([' ', '\t', '}', '/', '#']) && line.contains('(') && !line.ends_with(';') {
            begin = begin.or(Some((index, name(line))));
        }
        if line == "}"
            && let Some((start, name)) = begin.take()
        {
            sizes.push((start + 1, Measure::Function, name, index - start + 1));
        }
        if line.starts_with("};") {
            begin = None;
        }
    }
    let too_large = sizes.into_iter().filter(|(_, measure, _, size)| *size > measure.most());
    let one = |(line, measure, name, size)| Measured { file: file.to_owned(), line, measure, name, size };
    too_large.map(one).collect()
}

/// The name of what a line declares: the last word before its last parenthesis that opens arguments.
fn name(line: &str) -> String {
    let before = line.split('(').next().unwrap_or(line);
    before.rsplit([' ', '*']).next().unwrap_or(before).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_function_is_found() {
        let body = "    g();\n".repeat(Measure::Function.most());
        let text = format!(
            "struct s {{\n    int a;\n}};\n\nstatic int f(int a,\n             int b)\n{{\n{body}}}\n"
        );
        let found = measure(Path::new("crates/x/bpf/y.h"), &text);
        assert_eq!((found[0].name.as_str(), found[0].line, found.len()), ("f", 5, 1));
    }
}
