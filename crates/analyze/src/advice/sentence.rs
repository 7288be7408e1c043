//! Numbers in the sentences of rules: each is written once, as the constant that the rule compares with.

/// Keeps a sentence for as long as the program runs, as the table of rules is kept.
pub(super) fn text(sentence: String) -> &'static str {
    sentence.leak()
}

/// The usual threshold of a rule on code: a share of CPU time, in percent.
pub(super) fn at_least(percent: f64) -> &'static str {
    text(format!("at least {percent}% of processor time"))
}

/// Writes a number with its thousands apart, such as `10,000`.
pub(super) fn grouped(number: f64) -> String {
    let digits = number.to_string();
    let whole = digits.split('.').next().map_or(0, str::len);
    let comma = |at: usize| at > 0 && at < whole && (whole - at).is_multiple_of(3);
    digits.char_indices().fold(String::new(), |mut text, (at, digit)| {
        text.extend(comma(at).then_some(','));
        text.push(digit);
        text
    })
}

/// Writes a part of 1 in percent.
pub(super) fn percent(part: f64) -> String {
    format!("{}%", (part * 1e4).round() / 100.0)
}

/// Writes a part of 1 in words, or in percent if there are none for it.
pub(super) fn part(part: f64) -> String {
    const WORDS: [(f64, &str); 8] = [
        (1.0 / 2.0, "half"),
        (1.0 / 3.0, "a third"),
        (1.0 / 4.0, "a quarter"),
        (1.0 / 5.0, "a fifth"),
        (4.0 / 5.0, "four fifths"),
        (1.0 / 10.0, "a tenth"),
        (9.0 / 10.0, "nine tenths"),
        (1.0 / 16.0, "a sixteenth"),
    ];
    let known = WORDS.iter().find(|(value, _)| (value - part).abs() < 1e-9);
    known.map_or_else(|| percent(part), |(_, word)| (*word).to_owned())
}

/// Writes a small number as a word.
pub(super) fn word(number: u64) -> String {
    const WORDS: [&str; 11] =
        ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let word = usize::try_from(number).ok().and_then(|number| WORDS.get(number));
    word.map_or_else(|| grouped(number as f64), |word| (*word).to_owned())
}

/// Writes a duration in seconds.
pub(super) fn seconds(ns: u64) -> String {
    match ns {
        1_000_000_000 => "a second".into(),
        ns => format!("{} s", ns as f64 / 1e9),
    }
}

/// Writes a number of bytes in the largest unit that divides it.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_people_write_them() {
        assert_eq!(
            [0.0, 100.0, 1000.0, 100_000.0, 1.2].map(grouped),
            ["0", "100", "1,000", "100,000", "1.2"]
        );
        assert_eq!([0.3, 0.02, 1.0 / 7.0].map(percent), ["30%", "2%", "14.29%"]);
        assert_eq!([0.5, 1.0 / 3.0, 0.8, 0.15].map(part), ["half", "a third", "four fifths", "15%"]);
        assert_eq!([2, 10, 1000].map(word), ["two", "ten", "1,000"]);
        assert_eq!([1_000_000_000, 500_000_000].map(seconds), ["a second", "0.5 s"]);
        assert_eq!([16, 4096, 4 << 20, 65536].map(size), ["16 bytes", "4 KiB", "4 MiB", "64 KiB"]);
    }
}
