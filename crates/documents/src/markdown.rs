//! Names and words in Markdown, as GitHub reads it: nothing in them is a mark, a tag or the end of a table's cell.

use plumb_formats::escape::printable;

/// A name as a code span, in which nothing means anything; its fence is longer than any row of backticks in it.
pub fn code(name: &str) -> String {
    let name = printable(name);
    if name.trim().is_empty() {
        return String::new();
    }
    let longest = name.split(|one| one != '`').map(str::len).max().unwrap_or(0);
    let (fence, space) = ("`".repeat(longest + 1), if longest > 0 { " " } else { "" });
    format!("{fence}{space}{name}{space}{fence}")
}

/// A name as a code span in a table's cell, which a bar would end also there.
pub fn cell_code(name: &str) -> String {
    // One behind a backslash can't be escaped: the backslash would be.
    code(name).replace("\\|", "\\│").replace('|', "\\|")
}

/// Words in which nothing is a mark.
pub fn escape(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    for char in printable(words).chars() {
        if matches!(char, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&') {
            out.push('\\');
        }
        out.push(char);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_a_mark() {
        assert_eq!(code("f<int>"), "`f<int>`");
        assert_eq!(code("a``b`<img src=x>"), "``` a``b`<img src=x> ```");
        assert_eq!(cell_code("a|b\\|c\nd"), "`a\\|b\\│c\u{fffd}d`");
        assert_eq!(escape("<img src=x> [a](b) *c*"), "\\<img src=x\\> \\[a\\](b) \\*c\\*");
        assert_eq!(code(""), "");
    }
}
