//! Tells folded stacks from other text: a line of any log or table may end in a number.

use super::read::{Count, parts};

/// Fewest words of a sentence. Names of functions without parameters have up to four, with the type that they return
/// (`unsigned long const* find<int>`).
const SENTENCE_WORDS: usize = 5;

/// Number of words at the start of a line among which a log has its time.
const TIME_WORDS: usize = 5;

/// The looks of the lines that were read.
#[derive(Default)]
pub(super) struct Evidence {
    lines: usize,
    /// Lines with a `;` between two functions.
    with_callers: usize,
    /// Lines with another number before the count.
    differences: usize,
    /// Lines that begin with a number or a time.
    logged: usize,
    sentences: usize,
    /// Whether a line is as in a table of names and numbers.
    has_row: bool,
}

impl Evidence {
    /// Adds a line.
    pub fn add(&mut self, stack: &[u8], count: Count) {
        let is_difference = parts(stack).is_some();
        let outermost = stack.split(|&byte| byte == b';').next().unwrap_or_default();
        let has_callers = outermost.len() < stack.len();
        self.lines += 1;
        self.with_callers += usize::from(has_callers);
        self.differences += usize::from(is_difference);
        self.has_row |= is_difference || matches!(count, Count::Whole(0)) || stack.ends_with(b":");
        self.logged += usize::from(has_time(outermost) || !has_callers && is_numbered(outermost));
        self.sentences += usize::from(is_sentence(stack));
    }

    /// Returns a description of the text if it has other looks than folded stacks.
    pub fn refusal(&self) -> Option<&'static str> {
        let is_most = |lines: usize| lines > self.lines / 2;
        // Rows of numbers, such as /proc/stat, and counts of single words, such as /proc/vmstat.
        if self.has_row && self.with_callers == 0 {
            return Some(
                "a table of names and numbers, not folded stacks: no line has a `;` between two functions",
            );
        }
        if self.differences > 0 && self.differences == self.lines {
            return Some(
                "a difference of folded stacks, with two counts a line: use the two files that it was made of",
            );
        }
        if is_most(self.logged) {
            return Some("lines that begin with numbers or times, as in a log, not folded stacks");
        }
        if is_most(self.sentences) && self.with_callers == 0 {
            return Some("sentences, not folded stacks: no line has a `;` between two functions");
        }
        None
    }
}

/// Returns the words of a text, without brackets around them.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = text.split(u8::is_ascii_whitespace);
    let trimmed = words.map(|word| {
        let is_inner = |byte: &u8| !b"[](){}<>,".contains(byte);
        let start = word.iter().position(is_inner).unwrap_or(word.len());
        let end = word.iter().rposition(is_inner).map_or(start, |last| last + 1);
        &word[start..end]
    });
    trimmed.filter(|word| !word.is_empty())
}

/// Whether a text begins with a number, a date, a time or an IPv4 address.
fn is_numbered(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b".:/,-+TZ%".contains(byte);
    words(text).next().is_some_and(|word| word[0].is_ascii_digit() && word.iter().all(is_part))
}

/// Whether a text begins with a time of the day, such as `Nov 28 14:00:01`.
fn has_time(text: &[u8]) -> bool {
    words(text).take(TIME_WORDS).any(|word| word.windows(8).any(is_time))
}

fn is_time(text: &[u8]) -> bool {
    text.iter().enumerate().all(|(at, byte)| if at % 3 == 2 { *byte == b':' } else { byte.is_ascii_digit() })
}

/// Whether a text has as many words as no name, apart from what is in brackets.
fn is_sentence(text: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut outer: Vec<u8> = Vec::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b')' | b']' | b'}' | b'>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => outer.push(byte),
            _ => {}
        }
    }
    words(&outer).filter(|word| word.iter().any(u8::is_ascii_alphabetic)).nth(SENTENCE_WORDS - 1).is_some()
}
