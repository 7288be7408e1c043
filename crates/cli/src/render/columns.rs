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

/// A line in lines of at most `width` columns, broken at spaces; those after the first are indented by `hanging` more than the first is. A longer
/// word has a line of its own, which sticks out.
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

/// Which columns stay in a line of at most `limit`, each with two spaces before it: those of the highest rank go first, rank 0 stays.
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

/// A line that names the columns which do not stay; `None`: all do.
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
