//! Shares and relative changes as text.

/// Returns a share in percent, without a zero decimal.
pub fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    format!("{}%", text.strip_suffix(".0").unwrap_or(&text))
}

/// Returns a relative change with its interval, `-20.1% [-22.0% .. -18.3%]`, cut off at -100%.
pub fn with_interval([change, low, high]: [f64; 3]) -> String {
    let signed = |share: f64| format!("{:+.1}%", share.max(-1.0) * 100.0);
    format!("{} [{} .. {}]", signed(change), signed(low), signed(high))
}
