//! Words that don't belong in any tracked file: paths of one machine.

use std::path::Path;

use super::Finding;

/// Findings about the words of one text file.
pub fn check(file: &Path, text: &str) -> Vec<Finding> {
    // Spelled in two parts, so that this file passes its own check.
    let forbidden = [concat!("/wo", "rk/"), concat!("/ro", "ot/."), concat!("/ho", "me/")];
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for word in forbidden.iter().filter(|word| line.contains(**word)) {
            findings.push(Finding {
                file: file.to_owned(),
                line: number + 1,
                what: format!("{word} is a path of one machine"),
            });
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_path_is_found_with_its_line() {
        let text = format!("fine\nsee {}main", concat!("/wo", "rk/"));
        let findings = check(Path::new("README.md"), &text);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 2);
    }
}
