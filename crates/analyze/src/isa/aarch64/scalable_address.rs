//! Addresses of scalable vectors' loads and stores as text (DDI 0487, C8).

use disarm64::InsnOperand;

use super::word::Word;
use super::write::of_width;

/// Returns the address, with the letter of its vectors' elements; `None` if its form is not known here.
pub(super) fn address(word: Word, operand: &InsnOperand, element: Option<char>) -> Option<String> {
    let kind: &str = operand.kind.into();
    let form = kind.strip_prefix("SVE_ADDR_")?;
    let suffix = element.map_or_else(String::new, |letter| format!(".{letter}"));
    let base = if word.rn() == 31 { "sp".to_owned() } else { of_width(true, word.rn()) };
    // A vector of addresses, and one of offsets.
    let (addresses, offsets) = (format!("z{}{suffix}", word.rn()), format!("z{}{suffix}", word.rm()));
    let (shape, rest) = form.split_at_checked(2)?;
    let amount = |text: &str| text.rsplit_once("LSL").and_then(|(_, by)| by.parse::<u32>().ok()).unwrap_or(0);
    Some(match shape {
        "RI" => with_offset(word, &base, rest)?,
        "ZI" => {
            let unit = rest.split_once('x').map_or(Some(1), |(_, by)| by.parse::<u32>().ok())?;
            match word.bits(16, 5) * unit {
                0 => format!("[{addresses}]"),
                offset => format!("[{addresses}, #{offset}]"),
            }
        }
        "RR" | "RX" | "RM" => match (amount(rest), word.rm()) {
            // Without an index, or with the zero register as one.
            (0, 31) if shape != "RR" => format!("[{base}]"),
            (0, _) => format!("[{base}, {}]", of_width(true, word.rm())),
            (by, _) => format!("[{base}, {}, lsl #{by}]", of_width(true, word.rm())),
        },
        "ZX" => format!("[{addresses}, {}]", of_width(true, word.rm())),
        "RZ" if rest.starts_with("_XTW") => {
            let (by, at) = rest.strip_prefix("_XTW")?.split_once('_')?;
            let extension = if word.bit(at.parse().ok()?) { "sxtw" } else { "uxtw" };
            let by = if by.is_empty() { String::new() } else { format!(" #{by}") };
            format!("[{base}, {offsets}, {extension}{by}]")
        }
        "RZ" => match amount(rest) {
            0 => format!("[{base}, {offsets}]"),
            by => format!("[{base}, {offsets}, lsl #{by}]"),
        },
        _ => return None,
    })
}

/// Returns an address with an offset, of which some are in units of the vector's size.
fn with_offset(word: Word, base: &str, rest: &str) -> Option<String> {
    let times =
        |unit: &str| unit.strip_suffix("VL").map(|unit| unit.trim_matches('x').parse::<i64>().unwrap_or(1));
    let (offset, is_scaled) = match rest.split_once('x').map_or((rest, "1"), |parts| parts) {
        ("_S4", unit) if unit.ends_with("VL") => (word.signed(16, 4) * times(unit)?, true),
        ("_S4", unit) => (word.signed(16, 4) * unit.parse::<i64>().ok()?, false),
        ("_S6", _) => (word.signed(16, 6), true),
        ("_S9", _) => (word.signed(16, 6) * 8 + i64::from(word.bits(10, 3)), true),
        ("_U6", unit) => (i64::from(word.bits(16, 6)) * unit.parse::<i64>().ok()?, false),
        _ => return None,
    };
    let unit = if is_scaled { ", mul vl" } else { "" };
    Some(if offset == 0 { format!("[{base}]") } else { format!("[{base}, #{offset}{unit}]") })
}
