//! `plumb query report`: findings, services and functions of a week against the week before, in Markdown for a chat or a mail.
//!
//! All numbers are the server's: findings, series of both weeks, and the comparison of `plumb diff`.

use std::collections::HashMap;
use std::io::Write;

use anyhow::{Context, Result, anyhow};
use plumb_documents::findings::Findings;
use plumb_server::{Series, moment};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Args, series, unexpected};
use crate::http::Client;
use crate::render::markdown::{cell_code, code, escape};

/// Default number of findings, services and functions.
const ROWS: usize = 10;

/// A time range in milliseconds since 1970.
type Range = (i64, i64);

/// CPU time of a service, in nanoseconds, or its values of another profile type.
#[derive(Debug, PartialEq)]
struct Service {
    name: String,
    now: f64,
    before: f64,
}

/// Response of the comparison (docs/json.md).
#[derive(Deserialize)]
struct Comparison {
    rows: Vec<Row>,
}

/// A row of the comparison. Rows of functions have a name.
#[derive(Deserialize)]
struct Row {
    function: Option<String>,
    /// Values before and now.
    value: [f64; 2],
    mark: String,
}

impl Row {
    fn difference(&self) -> f64 {
        self.value[1] - self.value[0]
    }
}

/// The unit of values.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    Nanoseconds,
    /// Counts, such as samples whose rate is not known.
    Count,
}

impl Unit {
    fn of(kind: &str) -> Self {
        if kind.split(':').nth(2) == Some("nanoseconds") { Self::Nanoseconds } else { Self::Count }
    }

    /// A value with its unit.
    fn text(self, value: f64) -> String {
        let seconds = value / 1e9;
        match self {
            Self::Count => format!("{value:.0}"),
            Self::Nanoseconds if seconds >= 7200.0 => format!("{:.1} h", seconds / 3600.0),
            Self::Nanoseconds if seconds >= 120.0 => format!("{:.1} min", seconds / 60.0),
            Self::Nanoseconds => format!("{seconds:.1} s"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "CPU time",
            Self::Count => "samples",
        }
    }
}

/// The report.
struct Report {
    range: Range,
    unit: Unit,
    findings: Findings,
    services: Vec<Service>,
    /// Functions whose values have changed by more than chance explains, the largest change first. `None`: nothing to compare with.
    functions: Option<Vec<Row>>,
}

/// Writes the report of the server's profiles of a type.
pub(super) fn write(args: &Args, client: &Client, kind: &str, out: &mut impl Write) -> Result<()> {
    let now = moment::now();
    let time =
        |text: &str| moment::parse(text, now).ok_or_else(|| anyhow!("{text} is not a time: write now-7d"));
    let range = (time(args.from())?, time(&args.until)?);
    let before = (range.0.saturating_sub(range.1.saturating_sub(range.0)).max(1), range.0);
    let asked = Asked { args, client, kind };
    let findings: Findings = asked.get("/api/v1/findings", range, &[])?;
    let services = services(&asked.cpu(range)?, &asked.cpu(before)?);
    let has_before = services.iter().any(|service| service.before > 0.0);
    let functions = has_before.then(|| asked.changes(range, before)).transpose()?;
    let report = Report { range, unit: Unit::of(kind), findings, services, functions };
    show(&report, args.limit.unwrap_or(ROWS), args.to.trim_end_matches('/'), out)
}

/// The server, and the selection of its profiles.
struct Asked<'a> {
    args: &'a Args,
    client: &'a Client,
    kind: &'a str,
}

impl Asked<'_> {
    /// The answer of a path on the selected profiles of a range.
    fn get<T: DeserializeOwned>(&self, path: &str, range: Range, more: &[(&str, &str)]) -> Result<T> {
        let [from, until] = [range.0.to_string(), range.1.to_string()];
        let mut parameters =
            vec![("query", &*self.args.query), ("type", self.kind), ("from", &*from), ("until", &*until)];
        parameters.extend(more);
        let answer = self.client.get(path, &parameters)?;
        serde_json::from_slice(&answer).with_context(|| unexpected(self.args))
    }

    /// CPU time by service.
    fn cpu(&self, range: Range) -> Result<Vec<Series>> {
        self.get("/api/v1/series", range, &[("by", "service_name")])
    }

    /// Functions that changed.
    fn changes(&self, range: Range, before: Range) -> Result<Vec<Row>> {
        let [from, until] = [before.0.to_string(), before.1.to_string()];
        let base = [("base-from", &*from), ("base-until", &*until)];
        let compared: Comparison = self.get("/api/v1/selection/diff", range, &base)?;
        let mut rows = compared.rows;
        rows.retain(|row| row.function.is_some() && row.mark != "noise");
        rows.sort_by(|a, b| b.difference().abs().total_cmp(&a.difference().abs()));
        Ok(rows)
    }
}

/// CPU time of services in both ranges, the largest in the later one first.
fn services(now: &[Series], before: &[Series]) -> Vec<Service> {
    let mut services: HashMap<String, Service> = HashMap::new();
    for (rows, is_now) in [(now, true), (before, false)] {
        for row in rows {
            let name = series::name(row);
            let service = services.entry(name.clone()).or_insert(Service { name, now: 0.0, before: 0.0 });
            *(if is_now { &mut service.now } else { &mut service.before }) += series::sum(row);
        }
    }
    let mut services: Vec<Service> = services.into_values().collect();
    services.sort_by(|a, b| b.now.total_cmp(&a.now).then_with(|| a.name.cmp(&b.name)));
    services
}

fn show(report: &Report, limit: usize, url: &str, out: &mut impl Write) -> Result<()> {
    let (from, until) = report.range;
    let unit = report.unit.name();
    writeln!(out, "# Report on {unit} from {} to {}\n", moment::text(from), moment::text(until))?;
    writeln!(out, "{}\n", headline(report))?;
    show_findings(&report.findings, limit, out)?;
    show_services(report, limit, out)?;
    show_functions(report, limit, out)?;
    Ok(writeln!(out, "More: {url}/?from={from}&until={until}")?)
}

/// The most important numbers in a sentence or two.
fn headline(report: &Report) -> String {
    let sum = |of: fn(&Service) -> f64| report.services.iter().map(of).sum::<f64>();
    let (now, before) = (sum(|one| one.now), sum(|one| one.before));
    let services = report.services.iter().filter(|one| one.now > 0.0).count();
    let services = if services == 1 { "1 service".to_owned() } else { format!("{services} services") };
    let change = match before > 0.0 {
        true => format!(", {} against the same time before", change(before, now)),
        false => String::new(),
    };
    let first = match report.findings.findings.first() {
        Some(first) => format!(" {}: {}.", escape(&first.service), escape(&first.title)),
        None => " Nothing stands out.".to_owned(),
    };
    let (unit, now) = (report.unit.name(), report.unit.text(now));
    format!("**{now} of {unit} in {services}{change}.**{first}")
}

fn show_findings(found: &Findings, limit: usize, out: &mut impl Write) -> Result<()> {
    writeln!(out, "## Findings\n")?;
    for (number, one) in found.findings.iter().take(limit).enumerate() {
        writeln!(out, "{}. **{}**: {}", number + 1, escape(&one.service), escape(&one.title))?;
        if let Some(function) = &one.evidence.function {
            writeln!(out, "   - In {}", code(function))?;
        }
        one.details.iter().try_for_each(|detail| writeln!(out, "   - {}", escape(detail)))?;
        if let Some(remedy) = &one.remedy {
            writeln!(out, "   - To do: {}", escape(remedy))?;
        }
    }
    if found.findings.is_empty() {
        writeln!(out, "Nothing stands out.")?;
    }
    let left = found.findings.len().saturating_sub(limit);
    if left > 0 {
        writeln!(out, "\n{left} more: `plumb query findings`.")?;
    }
    for bound in &found.truncated {
        let service = bound.service.as_ref().map(|service| format!("{}: ", escape(service)));
        writeln!(out, "\n{}{}.", service.unwrap_or_default(), escape(&bound.says))?;
    }
    Ok(writeln!(out)?)
}

fn show_services(report: &Report, limit: usize, out: &mut impl Write) -> Result<()> {
    let length_ns = (report.range.1 - report.range.0) as f64 * 1e6;
    let (unit, name) = (report.unit, report.unit.name());
    writeln!(out, "## Services\n\n| service | {name} | mean | change |\n|---|---:|---:|---:|")?;
    let present = report.services.iter().filter(|one| one.now > 0.0);
    for Service { name, now, before } in present.clone().take(limit) {
        let mean = match unit {
            Unit::Nanoseconds => format!("{} processors", significant(now / length_ns.max(1.0))),
            Unit::Count => format!("{} a second", significant(1e9 * now / length_ns.max(1.0))),
        };
        let change = match report.functions {
            Some(_) => change(*before, *now),
            None => "–".to_owned(),
        };
        let value = unit.text(*now);
        writeln!(out, "| {} | {value} | {mean} | {change} |", cell_code(name))?;
    }
    let left = present.count().saturating_sub(limit);
    if left > 0 {
        writeln!(out, "\n{left} more: `plumb query series`.")?;
    }
    Ok(writeln!(out)?)
}

fn show_functions(report: &Report, limit: usize, out: &mut impl Write) -> Result<()> {
    writeln!(out, "## Functions that changed\n")?;
    match report.functions.as_deref() {
        None => writeln!(out, "There are no profiles before this time to compare with.")?,
        Some([]) => writeln!(out, "None by more than chance explains.")?,
        Some(rows) => {
            writeln!(out, "| function | before | now | change |\n|---|---:|---:|---:|")?;
            for row in rows.iter().take(limit) {
                let [before, now] = row.value;
                let name = cell_code(row.function.as_deref().unwrap_or_default());
                let [before_text, now_text] = row.value.map(|value| report.unit.text(value));
                writeln!(out, "| {name} | {before_text} | {now_text} | {} |", change(before, now))?;
            }
            let left = rows.len().saturating_sub(limit);
            if left > 0 {
                writeln!(out, "\n{left} more: `plumb query diff --from now-7d`.")?;
            }
        }
    }
    Ok(writeln!(out)?)
}

/// A number with two significant digits, and all digits before the point.
fn significant(value: f64) -> String {
    let first = if value > 0.0 { value.log10().floor() } else { 0.0 };
    format!("{value:.*}", (1.0 - first).clamp(0.0, 6.0) as usize)
}

/// A change in percent.
fn change(before: f64, now: f64) -> String {
    if before <= 0.0 {
        return "new".to_owned();
    }
    let percent = 100.0 * (now - before) / before;
    let sign = if percent < 0.0 { '−' } else { '+' };
    format!("{sign}{:.*}%", usize::from(percent.abs() < 10.0), percent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_and_times_are_short() {
        assert_eq!(change(100.0, 138.0), "+38%");
        assert_eq!((change(1000.0, 958.0), change(0.0, 1.0)), ("−4.2%".to_owned(), "new".to_owned()));
        assert_eq!(
            [0.0, 0.0018, 0.25, 1.25, 125.4].map(significant),
            ["0.0", "0.0018", "0.25", "1.2", "125"]
        );
        let time = |ns| Unit::Nanoseconds.text(ns);
        assert_eq!([5e9, 600e9, 9e12].map(time), ["5.0 s", "10.0 min", "2.5 h"]);
        assert_eq!(Unit::of("process_cpu:samples:count:cpu:nanoseconds").text(12.0), "12");
    }
}
