//! Limits for `--fail-on`.

use std::fmt;

use plumb_analyze::{CommandComparison, Verdict};

use crate::limits;

/// Names that a limit may use, and the figures that they mean.
const NAMES: [(&str, &str); 9] = [
    ("wall", "wall_ns"),
    ("cpu", "cpu_ns"),
    ("user+sys", "cpu_ns"),
    ("total", "cpu_ns"),
    ("kernel", "kernel_ns"),
    ("rss", "max_rss_bytes"),
    ("faults", "minor_faults"),
    ("switches", "context-switches"),
    ("metric", "metric"),
];

/// Largest accepted increase of a figure from A to B.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    text: String,
    figure: &'static str,
    /// 0.03 for 3%.
    by: f64,
}

/// Reads `wall>3%`.
pub(super) fn parse(text: &str) -> Result<Limit, String> {
    let (name, by) = limits::limit(text)?;
    let known = NAMES.iter().find(|(known, _)| *known == name);
    let (_, figure) = known.ok_or_else(|| {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        format!("expected a figure and a share, such as wall>3%; figures: {}", names.join(" "))
    })?;
    Ok(Limit { text: text.into(), figure, by })
}

impl Limit {
    /// Whether B is worse than A by more than the limit, and significantly so.
    pub(super) fn is_exceeded(&self, compared: &CommandComparison) -> bool {
        let found = compared.figures.iter().find(|one| one.name == self.figure);
        found.and_then(|one| Some((one, one.comparison?))).is_some_and(|(one, comparison)| {
            let ratio = comparison.ratio.value;
            match one.more_is_better {
                true => one.verdict == Verdict::Less && 1.0 / ratio > 1.0 + self.by,
                false => one.verdict == Verdict::More && ratio > 1.0 + self.by,
            }
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_a_figure_and_a_share() {
        let limit = parse("wall>3%").expect("it is one");
        assert_eq!((limit.figure, limit.by), ("wall_ns", 0.03));
        assert_eq!(parse("cpu > 0.5").expect("it is one").by, 0.005);
        assert!(parse("wall").is_err() && parse("x>3%").is_err() && parse("wall>x").is_err());
    }
}
