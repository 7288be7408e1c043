//! Text in columns: its width on a screen, and padding it to that of its column.
//!
//! Unlike the widths of `format!`, which count characters (some take two columns) and panic above 65,535.

use unicode_width::UnicodeWidthStr;

/// Widest padded cell. A longer one sticks out, so that one long name does not widen the whole column.
pub const WIDEST: usize = 300;

/// The number of columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text, padded with spaces on the right.
pub fn left(text: &str, columns: usize) -> String {
    let mut padded = text.to_owned();
    padded.extend(std::iter::repeat_n(' ', missing(text, columns)));
    padded
}

/// The text, padded with spaces on the left.
pub fn right(text: &str, columns: usize) -> String {
    let mut padded = " ".repeat(missing(text, columns));
    padded.push_str(text);
    padded
}

/// Wraps a line at spaces to at most `width` columns; continuation lines are indented by `hanging` more than the first. A longer
/// word gets a line of its own, which sticks out.
pub fn fold(line: &str, width: usize, hanging: usize) -> Vec<String> {
    if self::width(line) <= width {
        return vec![line.to_owned()];
    }
    let indent = line.chars().take_while(|&one| one == ' ').count() + hanging;
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in line.split_inclusive(' ') {
        let is_begun = !current.trim().is_empty();
        if is_begun && self::width(&current) + self::width(word.trim_end()) > width {
            lines.push(std::mem::replace(&mut current, " ".repeat(indent)).trim_end().to_owned());
        }
        current.push_str(word);
    }
    lines.push(current.trim_end().to_owned());
    lines
}

/// The columns that fit in a line of at most `limit`, each with two spaces before it: the highest rank is dropped first, rank 0 stays.
pub fn that_fit(widths: &[usize], ranks: &[u8], limit: usize) -> Vec<bool> {
    let mut stay = vec![true; widths.len()];
    for rank in (1..=ranks.iter().copied().max().unwrap_or(0)).rev() {
        let used: usize =
            widths.iter().zip(&stay).filter(|(_, stay)| **stay).map(|(width, _)| width + 2).sum();
        if used <= limit {
            break;
        }
        stay.iter_mut().zip(ranks).for_each(|(stay, &own)| *stay &= own != rank);
    }
    stay
}

/// A line that names the dropped columns; `None` if there are none.
pub fn not_shown(titles: &[&str], stay: &[bool]) -> Option<String> {
    let gone = titles.iter().zip(stay).filter(|(_, stay)| !**stay).map(|(title, _)| title.trim());
    let gone = gone.collect::<Vec<_>>().join(", ");
    (!gone.is_empty()).then(|| format!("not shown at this width: {gone}"))
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
    fn a_line_is_folded_at_spaces() {
        assert_eq!(fold("plumb: all fits", 20, 2), ["plumb: all fits"]);
        assert_eq!(fold("plumb:   12%  in the file a", 15, 2), ["plumb:   12%", "  in the file a"]);
        let path = "/a/long/path/which/nobody/can/break";
        assert_eq!(fold(&format!("  in {path} too"), 12, 2), ["  in", &format!("    {path}"), "    too"]);
    }

    #[test]
    fn columns_go_by_their_rank_until_the_rest_fits() {
        let shown = |limit| that_fit(&[8, 4, 4, 10], &[0, 1, 1, 2], limit);
        assert_eq!(shown(34), [true; 4]);
        assert_eq!(shown(33), [true, true, true, false]);
        assert_eq!(shown(21), [true, false, false, false]);
        assert_eq!(shown(1), [true, false, false, false]);
        let titles = ["Name", "    Self", "Pid", "File"];
        let said = not_shown(&titles, &shown(21));
        assert_eq!(said.as_deref(), Some("not shown at this width: Self, Pid, File"));
        assert_eq!(not_shown(&titles, &shown(34)), None);
    }

    #[test]
    fn no_width_is_too_much() {
        let name = "x".repeat(100_000);
        assert_eq!(left(&name, 100_000), name);
        assert_eq!(right("1", usize::MAX).len(), WIDEST);
    }
}
