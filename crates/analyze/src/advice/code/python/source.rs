//! Classifies lines of Python source by indentation: search loops, and lines that raise.
//!
//! Invariant: code that is not a plain block of lines (multi-line strings, continued statements) never counts as a
//! search loop.

use std::collections::HashMap;

/// Source files of interpreted programs, by the path in their frames.
#[derive(Clone, Debug, Default)]
pub struct ScriptSources {
    files: HashMap<String, Vec<String>>,
}

impl ScriptSources {
    /// Adds a file, given as lines.
    pub fn add(&mut self, path: impl Into<String>, lines: Vec<String>) {
        let lines = lines.iter().map(|line| without_comment(line).to_owned()).collect();
        self.files.insert(path.into(), lines);
    }

    /// Returns whether a line belongs to a loop that searches for one element: its header, or the condition that is
    /// its whole body.
    pub(crate) fn is_search(&self, path: &str, line: u32) -> bool {
        let Some((lines, at)) = self.at(path, line) else { return false };
        is_search_expression(&lines[at]) || header_of(lines, at).is_some_and(|header| searches(lines, header))
    }

    /// Returns whether a line raises an exception.
    pub(crate) fn is_raise(&self, path: &str, line: u32) -> bool {
        self.at(path, line).is_some_and(|(lines, at)| first_word(&lines[at]) == "raise")
    }

    fn at(&self, path: &str, line: u32) -> Option<(&[String], usize)> {
        let lines = self.files.get(path)?;
        let at = usize::try_from(line).ok()?.checked_sub(1)?;
        (at < lines.len()).then_some((lines, at))
    }
}

/// Maximum number of lines of a loop that are examined.
const LONGEST: usize = 12;

/// Returns the header of the innermost `for` that holds a line.
fn header_of(lines: &[String], at: usize) -> Option<usize> {
    let mut indent = indent(&lines[at]);
    if is_for(&lines[at]) {
        return Some(at);
    }
    for index in (at.saturating_sub(LONGEST)..at).rev() {
        let line = &lines[index];
        if is_blank(line) || self::indent(line) >= indent {
            continue;
        }
        indent = self::indent(line);
        if is_for(line) {
            return Some(index);
        }
        if !matches!(first_word(line), "if" | "elif" | "else") {
            return None;
        }
    }
    None
}

/// Returns whether a loop only compares, and leaves on a match.
fn searches(lines: &[String], header: usize) -> bool {
    let own = indent(&lines[header]);
    let mut leaves = false;
    let mut compares = false;
    for line in lines[header + 1..].iter().filter(|line| !is_blank(line)).take(LONGEST) {
        if indent(line) <= own {
            break;
        }
        let text = line.trim();
        match first_word(line) {
            "if" | "elif" if text.ends_with(':') => compares |= is_comparison(text),
            "if" if is_comparison(text) && (text.contains(": return") || text.ends_with(": break")) => {
                (compares, leaves) = (true, true);
            }
            "return" | "break" => leaves = true,
            "continue" | "else:" | "pass" => {}
            // The loop does work on each element, or on the one that was found.
            _ => return false,
        }
    }
    leaves && compares
}

/// Recognizes `next(one for one in all if …)` and `any(one == … for one in all)`: a comparison is before the `for` or
/// after an `if`.
fn is_search_expression(line: &str) -> bool {
    let arguments = ["next(", "any("].iter().find_map(|call| {
        let (before, arguments) = line.split_once(call)?;
        // Exclude the end of another name, such as `executemany`.
        let is_name = before.ends_with(|last: char| last.is_alphanumeric() || last == '_' || last == '.');
        (!is_name).then_some(arguments)
    });
    let Some((element, rest)) = arguments.and_then(|arguments| arguments.split_once(" for ")) else {
        return false;
    };
    let condition = rest.split_once(" if ").map_or("", |(_, condition)| condition);
    rest.contains(" in ") && (is_comparison(element) || is_comparison(condition))
}

fn is_comparison(text: &str) -> bool {
    ["==", " is ", " in ", ".startswith(", ".endswith("].iter().any(|sign| text.contains(sign))
}

fn is_for(line: &str) -> bool {
    first_word(line) == "for" && line.trim_end().ends_with(':') && line.contains(" in ")
}

fn first_word(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// Returns a line without its comment: up to a `#` outside of the line's strings.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, character) in line.char_indices() {
        match (quote, character) {
            (None, '#') => return line[..at].trim_end(),
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
    }
    line
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(text: &str) -> ScriptSources {
        let mut sources = ScriptSources::default();
        sources.add("/a.py", text.lines().map(str::to_owned).collect());
        sources
    }

    fn searches_at(text: &str, line: u32) -> bool {
        sources(text).is_search("/a.py", line)
    }

    #[test]
    fn a_loop_that_leaves_where_it_fits_searches() {
        let found = "for one in all:\n    # by number\n    if one[\"id\"] == number:  # found\n        return one\nreturn None";
        assert!([1, 3, 4].into_iter().all(|line| searches_at(found, line)));
        assert!(!searches_at(found, 5), "behind the loop");
        assert!(searches_at("hit = next(u for u in users if u.id == 3)", 1));
        assert!(searches_at("if any(u.id == 3 for u in users):", 1));
    }

    #[test]
    fn a_loop_that_does_more_searches_not() {
        for text in [
            "for one in all:\n    total += one.price",
            "for one in all:\n    if one.id == number:\n        total += one.price",
            "for one in all:\n    price = one.price\n    if price == number:\n        break",
            "for one in all:\n    if one.is_open():\n        return one.run()\n    one.step()",
            "while True:\n    if a == b:\n        break",
            "for i in range(9):\n    call(i)",
            "db.executemany(sql, ((one, one == 3) for one in all))",
            "if a is b and any(check(one) for one in all):",
        ] {
            for line in 1..=text.lines().count() as u32 {
                assert!(!searches_at(text, line), "line {line} of {text}");
            }
        }
    }

    #[test]
    fn lines_that_are_not_there_are_nothing() {
        let sources = sources("raise KeyError(1)\n    raise\nraised = 1");
        assert_eq!(
            [0, 1, 2, 3, 4].map(|line| sources.is_raise("/a.py", line)),
            [false, true, true, false, false]
        );
        assert!(!sources.is_search("/a.py", 0) && !sources.is_search("/b.py", 1));
    }
}
