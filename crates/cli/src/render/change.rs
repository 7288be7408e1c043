//! Rows and their changes in words and figures, the same in all outputs.

use plumb_analyze::{Change, Diff, DiffRow, Evidence, Kind, Mark, Moved, Per, Subject, Visibility};

use crate::run_metrics::Unit;

/// What changes by less than this, and is known to, is said to be unchanged.
const UNCHANGED: f64 = 0.1;

/// The word for what happened to a row; empty where there is nothing to say that is no noise.
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

/// What a row is about, in one line.
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
        Subject::Cause(cause, name) => crate::render::label::cause(*cause, name).to_owned(),
    }
}

/// A value in the event's unit.
pub fn value(value: f64, unit: &str) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let unit = match unit {
        "ns" => Unit::Time,
        _ if value.fract() == 0.0 => Unit::Count,
        _ => Unit::Number,
    };
    if value < 0.0 { format!("-{}", unit.text(-value)) } else { unit.text(value) }
}

/// A difference, with its sign.
pub fn signed(difference: f64, unit: &str) -> String {
    let text = value(difference, unit);
    if difference > 0.0 { format!("+{text}") } else { text }
}

/// The difference as a share of the base.
pub fn relative(change: &Change) -> String {
    match change.relative() {
        Some(share) => format!("{:+.1}%", share * 100.0),
        None => "new".into(),
    }
}

/// How everything changed, and whether that says anything.
pub fn whole(diff: &Diff<'_, '_>, unit: &str) -> String {
    let whole = &diff.whole;
    if diff.options.per == Per::Second {
        return "values are of a second of processor time".into();
    }
    let [base, new] = whole.value.map(|of| value(of, unit));
    let why = match (whole.p <= diff.options.alpha, diff.evidence) {
        (true, _) => "",
        (false, Evidence::Single) => ": no more than two runs may differ by (23%); several of each say more",
        (false, _) => ": within noise",
    };
    let interval = format!("[{} .. {}]", signed(whole.low, unit), signed(whole.high, unit));
    format!("{base} before, {new} now, {} {interval}{why}", relative(whole))
}

/// What recordings tell of the speed of their runs.
pub fn speed(diff: &Diff<'_, '_>) -> Option<String> {
    if diff.options.per == Per::Second {
        return None;
    }
    let [ratio, low, high] = diff.speed();
    let more = match diff.evidence {
        // More than two runs of the same program mostly differ by.
        Evidence::Single if !(1.0 / 1.23..=1.23).contains(&ratio) => {
            "; that is much: the machine was not as fast, or all of the program changed; several recordings a side tell"
        }
        Evidence::Single => "; several recordings a side say more",
        _ => "",
    };
    Some(format!(
        "what did not change took {ratio:.3} times as long [{low:.3} .. {high:.3}], which intervals allow for{more}"
    ))
}

/// Rows below this share of either side matter to nobody.
const MATTERS: f64 = 0.02;

/// The least change that the runs could detect, for the largest unmarked rows.
pub fn detectable(diff: &Diff<'_, '_>) -> Option<String> {
    let alpha = diff.options.alpha;
    let quiet = diff.rows.iter().filter(|row| row.change.mark(alpha) == Mark::Noise);
    let parts: Vec<String> = quiet
        .filter(|row| row.change.share.iter().any(|&share| share >= MATTERS))
        .take(3)
        .map(|row| {
            let share = (row.change.share[0] + row.change.share[1]) * 50.0;
            let least = match row.change.detectable {
                least if least < 10.0 => format!("{:.0}%", (least * 100.0).ceil()),
                _ => "no change".into(),
            };
            let name = title(&row.subject, diff);
            let name = plumb_analyze::shorten(name.trim_start_matches("[.] ").trim_start_matches("[k] "), 40)
                .into_owned();
            format!("{least} of {name} ({share:.1}% of all)")
        })
        .collect();
    (!parts.is_empty()).then(|| {
        format!("the least change that would have been seen four times out of five: {}", parts.join(", "))
    })
}
