//! Rows and their changes in words and figures, the same in all outputs.

use plumb_analyze::{
    Change, Diff, DiffRow, Evidence, Kind, Mark, Moved, Per, SMALL_DIFFERENCE, Subject, Visibility, is_clock,
};

use crate::label;
use crate::metric::{self, MetricUnit};
use crate::percent::{percent, with_interval};

/// A change that is known to be smaller than this fraction is reported as unchanged.
const UNCHANGED: f64 = 0.1;

/// Returns the word for a row's change; empty if there is only noise.
pub fn note(row: &DiffRow, diff: &Diff<'_, '_>) -> String {
    let alpha = diff.options.alpha;
    let change = &row.change;
    let mut parts: Vec<String> = Vec::new();
    let mark = match change.mark(alpha) {
        Mark::More => "more",
        Mark::Less => "less",
        Mark::New => "new",
        Mark::Vanished => "eliminated",
        Mark::Noise if change.is_same_within(UNCHANGED) => "unchanged",
        Mark::Noise => "",
    };
    parts.extend((!mark.is_empty()).then(|| mark.to_owned()));
    if change.mark(alpha) == Mark::Noise && diff.options.per != Per::Second {
        parts.extend(match change.visibility(alpha) {
            Visibility::Newly => Some("newly visible".to_owned()),
            Visibility::More => Some("more visible".to_owned()),
            Visibility::Less => Some("less visible".to_owned()),
            Visibility::Same => None,
        });
    }
    let name = |number: u32| diff.functions()[number as usize].name.clone();
    parts.extend(row.moved.map(|moved| match moved {
        Moved::Inlined => "inlined now".to_owned(),
        Moved::Outlined => "no longer inlined".to_owned(),
        Moved::IntoCaller(caller) => format!("perhaps inlined into {}", name(caller)),
        Moved::OutOfCaller(caller) => format!("perhaps no longer inlined into {}", name(caller)),
    }));
    parts.join(", ")
}

/// Returns the subject of a row, in one line.
pub fn title(subject: &Subject, diff: &Diff<'_, '_>) -> String {
    let function = |number: u32| {
        let function = &diff.functions()[number as usize];
        let mode = match function.kind {
            Kind::Kernel => "[k] ",
            Kind::User => "[.] ",
            Kind::Marker => "[-] ",
        };
        format!("{mode}{}", function.name)
    };
    match subject {
        Subject::Function(number) => function(*number),
        Subject::Line(number, file, line) if *line > 0 => format!("{file}:{line} {}", function(*number)),
        Subject::Line(number, ..) => function(*number),
        Subject::Path(path) => {
            let names = path.iter().rev().map(|&number| diff.functions()[number as usize].name.as_str());
            names.collect::<Vec<_>>().join(" < ")
        }
        Subject::Cause(cause, name) => label::cause(*cause, name).to_owned(),
    }
}

/// Formats a value in the event's unit.
pub fn value(value: f64, unit: &str) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let unit = match unit {
        "ns" => MetricUnit::Time,
        _ if value.fract() == 0.0 => MetricUnit::Count,
        _ => MetricUnit::Number,
    };
    if value < 0.0 { format!("-{}", metric::text(unit, -value)) } else { metric::text(unit, value) }
}

/// Formats a difference with its sign.
pub fn signed(difference: f64, unit: &str) -> String {
    let text = value(difference, unit);
    if difference > 0.0 { format!("+{text}") } else { text }
}

/// Formats the confidence interval of a difference, cut off at minus the base.
pub fn interval(change: &Change, unit: &str) -> String {
    let [low, high] = [change.low, change.high].map(|end| signed(end.max(-change.value[0]), unit));
    format!("{low} .. {high}")
}

/// Formats the difference relative to the base: a percentage, or a factor if it is large.
pub fn relative(change: &Change) -> String {
    match change.relative() {
        Some(share) if share >= 9.0 => format!("{:.0}x", share + 1.0),
        Some(share) => format!("{:+.1}%", share * 100.0),
        // The note says whether the row is new.
        None => "-".into(),
    }
}

/// Returns the overall change, in the words of `plumb compare`.
pub fn verdict(diff: &Diff<'_, '_>, event: &str, unit: &str) -> String {
    let whole = &diff.whole;
    if diff.options.per == Per::Second {
        return "none on the whole: values are of a second of processor time".into();
    }
    let [base, new] = whole.value.map(|of| value(of, unit));
    let of_base = |part: f64| if whole.value[0] > 0.0 { part / whole.value[0] } else { f64::INFINITY };
    let change = [whole.difference(), whole.low, whole.high].map(of_base);
    let said = format!("{event} {base} before, {new} now, {}", with_interval(change));
    let words = if is_clock(event) { ["faster", "slower"] } else { ["less", "more"] };
    let most = change[1].abs().max(change[2].abs());
    match whole.mark(diff.options.alpha) {
        Mark::Less | Mark::Vanished => format!("{}: {said}", words[0]),
        Mark::More | Mark::New => format!("{}: {said}", words[1]),
        Mark::Noise if most <= SMALL_DIFFERENCE => format!("no difference above {}: {said}", percent(most)),
        Mark::Noise => format!("can't tell: {said}{}", needed(diff)),
    }
}

/// After an inconclusive result: the smallest detectable change, or how to record more.
fn needed(diff: &Diff<'_, '_>) -> String {
    match diff.evidence {
        Evidence::Single => {
            "; two runs of one program may differ by 23%: record several of each, in turns".into()
        }
        _ if diff.whole.detectable < 10.0 => {
            format!("; these recordings would show a change of {}", percent(diff.whole.detectable))
        }
        _ => String::new(),
    }
}

/// Returns the speed of the new side relative to the base, estimated from functions that did not change.
pub fn speed(diff: &Diff<'_, '_>) -> Option<String> {
    if diff.options.per == Per::Second {
        return None;
    }
    let [ratio, low, high] = diff.speed();
    let more = match diff.evidence {
        // Two runs of the same program mostly differ by less.
        Evidence::Single if !(1.0 / 1.23..=1.23).contains(&ratio) => {
            "; so much may be the machine or a change of the whole program: several recordings a side tell"
        }
        _ => "",
    };
    Some(format!(
        "functions that did not change took {ratio:.3}x the time of the base [{low:.3} .. {high:.3}]; intervals are corrected for it{more}"
    ))
}

/// A function below this share on both sides gets no note on its smallest detectable change.
const MATTERS: f64 = 0.05;
/// Nor does one whose smallest detectable change is larger than this.
const TELLING: f64 = 0.5;

/// Returns the smallest change that the runs would have shown of the largest unmarked rows.
pub fn detectable(diff: &Diff<'_, '_>) -> Option<String> {
    let quiet = diff.rows.iter().filter(|row| row.change.mark(diff.options.alpha) == Mark::Noise);
    let matters = |row: &&DiffRow| {
        row.change.share.iter().any(|&share| share >= MATTERS) && row.change.detectable <= TELLING
    };
    let parts: Vec<String> = quiet
        .filter(matters)
        .take(3)
        .map(|row| {
            let name = title(&row.subject, diff);
            let name = plumb_analyze::shorten(name.trim_start_matches("[.] ").trim_start_matches("[k] "), 40);
            format!("{:.0}% of {name}", (row.change.detectable * 100.0).ceil())
        })
        .collect();
    (!parts.is_empty()).then(|| format!("these recordings would show a change of {}", parts.join(", ")))
}
