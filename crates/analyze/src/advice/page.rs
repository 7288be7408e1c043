//! The page of all rules, `docs/rules.md`, in Markdown. A test writes and compares it.

use super::calls::CallRule;
use super::code::{CodeRule, Extent, GainModel};
use super::registry::RULES;
use super::sentence::percent;
use super::{LEAST_PERCENT, LEAST_SAMPLES, Rule};

/// Maximum number of functions that the page names as examples.
const NAMED: usize = 4;

/// Returns the page of all rules in Markdown, as it is in `docs/rules.md`.
pub fn page_of_rules() -> String {
    let mut page = introduction();
    for rules in RULES.iter() {
        page += &format!("\n## {}\n", rules.title);
        rules.code.iter().for_each(|rule| page += &of_code(rule));
        rules.calls.iter().for_each(|rule| page += &of_calls(rule));
        for rule in &rules.programs {
            page += &section(&rule.rule, "processes, by program", rule.rule.threshold, &[], None);
        }
    }
    page
}

fn introduction() -> String {
    format!(
        "# Rules

`plumb explain` and `plumb kernel --advice` name causes by these rules. Rules on functions and instructions are applied to samples, rules on system
calls to single calls (as root), and rules on processes to the processes of a recording, as `plumb procs` shows them.

- *Threshold*: a rule on samples holds where the lower end of the share's 95% interval reaches it, with {LEAST_SAMPLES} samples or more. A rule on calls or
  processes also has to gain {LEAST_PERCENT}% of the processor time or, if threads wait, of the elapsed time.
- *Activity*: work that a program may need; samples do not show whether it does more than necessary. Below the given share the report says what
  takes the time, and names no cause.
- *Gain*: predicted by a model for each rule, measured on programs with a known cause before and after the fix. *At most*: the cost that the rule counts.
  A rule on calls has that alone; `plumb explain` predicts its gain from the cost and the lines that make the calls.
- *Source*: where the rule and its numbers are from. *measured* are machines of plumb's authors.

This page is generated from the rules: `cargo run -p xtask -- codegen`.
"
    )
}

fn of_code(rule: &CodeRule) -> String {
    let others = if rule.named.len() > NAMED { ", …" } else { "" };
    let evidence = match rule.extent {
        Extent::Calls if rule.named.is_empty() => {
            "calls on the stacks of samples, with all below them".into()
        }
        Extent::Calls => {
            format!(
                "calls of {}{others} on the stacks of samples, with all below them",
                rule.named[..rule.named.len().min(NAMED)].join(", ")
            )
        }
        Extent::Instructions => "instructions of the functions with the most samples".to_owned(),
        Extent::Files => "instructions of all functions of a file".into(),
    };
    let activity = rule.activity.as_ref().map_or_else(String::new, |activity| match activity.below {
        below if below.is_finite() => format!("; an activity below {below}%"),
        _ => "; always an activity".into(),
    });
    let remedies: Vec<_> =
        rule.in_language.iter().map(|(of, rule)| (format!("{of:?}"), rule.remedy)).collect();
    let threshold = format!("{}{activity}", rule.rule.threshold);
    section(&rule.rule, &evidence, &threshold, &remedies, rule.gain.text())
}

fn of_calls(rule: &CallRule) -> String {
    let calls = rule.calls.iter().map(|call| format!("`{call}`"));
    let all: Vec<String> = calls.chain(rule.faults.then(|| "page faults".to_owned())).collect();
    section(&rule.rule, &all.join(", "), rule.rule.threshold, &[], None)
}

fn section(
    rule: &Rule,
    evidence: &str,
    threshold: &str,
    remedies: &[(String, &str)],
    gain: Option<String>,
) -> String {
    let &Rule { name, claim, pattern, remedy, bound, source, .. } = rule;
    let remedies = remedies.iter().map(|(of, remedy)| format!("- Do, in {of}: {}\n", escaped(remedy)));
    let remedies: String = remedies.collect();
    let gain = gain.unwrap_or_else(|| "not estimated".into());
    let [claim, pattern, remedy, bound, source] = [claim, pattern, remedy, bound, source].map(escaped);
    format!(
        "\n### {name}: {claim}\n\n- Seen: {pattern}\n- Evidence: {evidence}\n- Threshold: {threshold}\n- Do: {remedy}\n{remedies}\
         - Gain: {gain}; at most: {bound}\n- Source: {source}\n"
    )
}

/// Returns a text in which Markdown sees no markup.
fn escaped(text: &str) -> String {
    let special = |letter: &char| matches!(letter, '<' | '*' | '_' | '[' | '\\' | '`');
    text.chars().flat_map(|letter| special(&letter).then_some('\\').into_iter().chain([letter])).collect()
}

impl GainModel {
    /// Returns the model in words; `None`: nothing is predicted.
    fn text(self) -> Option<String> {
        let between = |least: f64, most: f64| format!("{:.0} to {}", least * 100.0, percent(most));
        let and = |callers: f64| match callers > 0.0 {
            true => format!(", and up to {} of its callers' own time", percent(callers)),
            false => String::new(),
        };
        Some(match self {
            Self::Unknown => return None,
            Self::Parts { least, most, callers } => {
                format!("{} of the share{}", between(least, most), and(callers))
            }
            Self::Lines { least, most, callers } => {
                format!("{} of the lines that call this{}", between(least, most), and(callers))
            }
            Self::Everything { least, .. } => format!(
                "{} of the lines that call this or more, up to all that is not done for other lines",
                percent(least)
            ),
            Self::Loops { least, most } => format!("{} of what the loop can avoid", between(least, most)),
            Self::CpuOnly { least, most } => {
                format!("{} of the share, in processor time only", between(least, most))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::page_of_rules;

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rules.md");

    #[test]
    fn the_page_of_rules_is_made_of_them() {
        let text = page_of_rules();
        if std::env::var_os("PLUMB_WRITE").is_some() {
            std::fs::write(FILE, &text).expect("the file can be written");
        }
        let known = std::fs::read_to_string(FILE).unwrap_or_default();
        assert!(known == text, "docs/rules.md is stale: cargo run -p xtask -- codegen");
    }
}
