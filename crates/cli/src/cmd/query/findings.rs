//! `plumb query findings`: findings on the services of a time range, in the server's order.

use std::io::Write;

use anyhow::Result;
use plumb_documents::findings::{Findings, LargeService};

use crate::render::duration::time;
use crate::terminal::printable;

/// Age of an answer that is worth a note, in milliseconds.
const OLD: i64 = 5000;

/// Prints at most `limit` findings. `until`: the requested end, in milliseconds since 1970. `url` maps a selector to the URL from which other commands read its samples.
pub(super) fn show(
    found: &Findings,
    limit: usize,
    until: Option<i64>,
    url: impl Fn(&str) -> String,
    out: &mut impl Write,
) -> Result<()> {
    let percent = |value: i64, of: i64| 100.0 * value as f64 / of.max(1) as f64;
    for one in found.findings.iter().take(limit) {
        let share = match one.of_machine_percent {
            Some(share) => format!("{} of the machine", short(share)),
            None => format!("{} of all CPU time", short(percent(one.cpu_ns, found.cpu_ns))),
        };
        writeln!(out, "{}: {}", printable(&one.service), printable(&one.title))?;
        writeln!(out, "    {}, {share}", time(one.cpu_ns as f64))?;
        one.details.iter().try_for_each(|detail| writeln!(out, "    {}", printable(detail)))?;
        if let Some(remedy) = &one.remedy {
            writeln!(out, "    do    {}", printable(remedy))?;
        }
        writeln!(out, "    more  plumb explain {}\n", shell_words::quote(&url(&one.evidence.selector)))?;
    }
    if found.findings.is_empty() && !found.largest.is_empty() {
        let one = |LargeService { service, cpu_ns }: &LargeService| {
            format!("{} {}", printable(service), short(percent(*cpu_ns, found.cpu_ns)))
        };
        let all: Vec<String> = found.largest.iter().map(one).collect();
        writeln!(out, "Nothing stands out. The largest services: {}\n", all.join(", "))?;
    }
    if let Some(age) = until.map(|until| until.saturating_sub(found.until_ms)).filter(|&age| age >= OLD) {
        writeln!(out, "note  as of {} s ago, when the server last computed it", age / 1000)?;
    }
    for bound in &found.truncated {
        let service = bound.service.as_ref().map(|service| format!("{}: ", printable(service)));
        writeln!(out, "note  {}{}", service.unwrap_or_default(), printable(&bound.says))?;
    }
    let of_machine = match found.machine_ns {
        Some(machine) => format!(", {} of the machine", short(percent(found.cpu_ns, machine))),
        None => String::new(),
    };
    let left = found.findings.len().saturating_sub(limit);
    let more =
        if left > 0 { format!("; {left} more findings: --limit {}", limit + left) } else { String::new() };
    let (services, examined) = (found.services, found.examined);
    let looked = match examined < services {
        true => format!("{examined} of {services} services"),
        false if services == 1 => "1 service".to_owned(),
        false => format!("{services} services"),
    };
    let own = match found.own_cpu_ns {
        0 => String::new(),
        own => format!("; plumb's own: {}", time(own as f64)),
    };
    writeln!(out, "{looked}, {} CPU time{of_machine}{own}{more}", time(found.cpu_ns as f64))?;
    Ok(())
}

fn short(percent: f64) -> String {
    match percent {
        large if large >= 10.0 => format!("{large:.0}%"),
        large if large >= 1.0 => format!("{large:.1}%"),
        small => format!("{small:.2}%"),
    }
}
