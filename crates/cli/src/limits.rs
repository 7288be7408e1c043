//! Parsers shared by commands that compare: `--fail-on NAME>SHARE`, percentages and probabilities.

/// Reads `wall>3%`: the figure's name, and 0.03.
pub fn limit(text: &str) -> Result<(&str, f64), String> {
    let (subject, by) = text
        .rsplit_once('>')
        .ok_or_else(|| format!("expected NAME>PERCENT, such as total>3%, not {text:?}"))?;
    Ok((subject.trim(), percent(by)?))
}

/// Reads `3%`; the sign is optional.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim();
    let percent: f64 = number.parse().map_err(|_| format!("expected a number in percent, not {text:?}"))?;
    if (0.0..=10_000.0).contains(&percent) {
        Ok(percent / 100.0)
    } else {
        Err("expected 0% to 10000%".into())
    }
}

/// Reads a probability above 0 and below 1.
pub fn probability(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "expected a number such as 0.05".to_owned())?;
    if share > 0.0 && share < 1.0 { Ok(share) } else { Err("expected a number between 0 and 1".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_subject_and_a_share() {
        assert_eq!(limit("wall>3%"), Ok(("wall", 0.03)));
        assert_eq!(limit("func:operator->* > 0.5"), Ok(("func:operator->*", 0.005)));
        assert!(limit("wall").is_err() && limit("wall>x").is_err() && limit("wall>-1%").is_err());
        assert!(probability("0").is_err() && probability("1").is_err() && probability("0.01") == Ok(0.01));
    }
}
