//! Text in columns: how wide it is on a screen, and how it is made as wide as its column.
//!
//! Not `format!`'s widths: those count characters, of which some take two columns, and above 65,535 they panic.

use unicode_width::UnicodeWidthStr;

/// No cell is made wider than this. A longer one sticks out: what stands beside it need not be as long as the longest name.
pub const WIDEST: usize = 300;

/// The columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text with spaces behind it.
pub fn left(text: &str, columns: usize) -> String {
    let mut padded = text.to_owned();
    padded.extend(std::iter::repeat_n(' ', missing(text, columns)));
    padded
}

/// The text with spaces before it.
pub fn right(text: &str, columns: usize) -> String {
    let mut padded = " ".repeat(missing(text, columns));
    padded.push_str(text);
    padded
}

fn missing(text: &str, columns: usize) -> usize {
    columns.min(WIDEST).saturating_sub(width(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_what_a_terminal_shows() {
        assert_eq!((width("main"), width("中文"), width("é"), width("e\u{301}")), (4, 4, 1, 1));
        assert_eq!((left("中", 4), right("中", 4)), ("中  ".to_owned(), "  中".to_owned()));
        assert_eq!((left("long", 2), right("long", 2)), ("long".to_owned(), "long".to_owned()));
    }

    #[test]
    fn no_width_is_too_much() {
        let name = "x".repeat(100_000);
        assert_eq!(left(&name, 100_000), name);
        assert_eq!(right("1", usize::MAX).len(), WIDEST);
    }
}
