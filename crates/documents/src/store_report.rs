//! The report on the profiles of a store: findings, services and functions of a time against the same time before, in Markdown for a chat or a
//! mail.
//!
//! Elsewhere: the numbers, which are a server's.

use std::collections::HashMap;
use std::io::{self, Write};

use serde::Deserialize;

use crate::findings::Findings;
use crate::markdown::{cell_code, code, escape};

/// CPU time of a service, in nanoseconds, or its values of another profile type.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceValues {
    /// The name.
    pub name: String,
    /// Value in the time of the report.
    pub now: f64,
    /// Value in the time before.
    pub before: f64,
}

/// Response of the comparison (docs/json.md).
#[derive(Deserialize)]
pub struct ComparisonRows {
    rows: Vec<ChangedFunction>,
}

impl ComparisonRows {
    /// The functions that changed, the largest change first.
    pub fn into_changed(self) -> Vec<ChangedFunction> {
        let mut rows = self.rows;
        rows.retain(|row| row.function.is_some() && row.mark != "noise");
        rows.sort_by(|a, b| b.difference().abs().total_cmp(&a.difference().abs()));
        rows
    }
}

/// A row of the comparison. Rows of functions have a name.
#[derive(Deserialize)]
pub struct ChangedFunction {
    function: Option<String>,
    /// Values before and now.
    value: [f64; 2],
    mark: String,
}

impl ChangedFunction {
    fn difference(&self) -> f64 {
        self.value[1] - self.value[0]
    }
}

/// The unit of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReportUnit {
    /// CPU time.
    Nanoseconds,
    /// Counts, such as samples whose rate is not known.
    Count,
}

impl ReportUnit {
    /// The unit of a profile type.
    pub fn of(kind: &str) -> Self {
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
pub struct StoreReport {
    /// The time of the report, in milliseconds since 1970.
    pub range: (i64, i64),
    /// Begin and end of that time as text.
    pub range_text: [String; 2],
    /// The unit of values.
    pub unit: ReportUnit,
    /// The findings, the most important first.
    pub findings: Findings,
    /// The services, the largest first.
    pub services: Vec<ServiceValues>,
    /// Functions whose values have changed by more than chance explains, the largest change first. `None`: nothing to compare with.
    pub functions: Option<Vec<ChangedFunction>>,
}

impl StoreReport {
    /// Writes the report, with at most `limit` findings, services and functions. `url`: address of the server.
    ///
    /// # Errors
    /// `out` fails.
    pub fn write(&self, limit: usize, url: &str, out: &mut impl Write) -> io::Result<()> {
        let [begin, end] = &self.range_text;
        let unit = self.unit.name();
        writeln!(out, "# Report on {unit} from {begin} to {end}\n")?;
        writeln!(out, "{}\n", headline(self))?;
        show_findings(&self.findings, limit, out)?;
        show_services(self, limit, out)?;
        show_functions(self, limit, out)?;
        let (from, until) = self.range;
        writeln!(out, "More: {url}/?from={from}&until={until}")
    }
}

/// The values of services in both times, the largest in the later one first. Each is given by the name of the service and a value.
pub fn services(now: Vec<(String, f64)>, before: Vec<(String, f64)>) -> Vec<ServiceValues> {
    let mut services: HashMap<String, ServiceValues> = HashMap::new();
    for (rows, is_now) in [(now, true), (before, false)] {
        for (name, value) in rows {
            let service =
                services.entry(name.clone()).or_insert(ServiceValues { name, now: 0.0, before: 0.0 });
            *(if is_now { &mut service.now } else { &mut service.before }) += value;
        }
    }
    let mut services: Vec<ServiceValues> = services.into_values().collect();
    services.sort_by(|a, b| b.now.total_cmp(&a.now).then_with(|| a.name.cmp(&b.name)));
    services
}

/// The most important numbers in a sentence or two.
fn headline(report: &StoreReport) -> String {
    let sum = |of: fn(&ServiceValues) -> f64| report.services.iter().map(of).sum::<f64>();
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

fn show_findings(found: &Findings, limit: usize, out: &mut impl Write) -> io::Result<()> {
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
    writeln!(out)
}

fn show_services(report: &StoreReport, limit: usize, out: &mut impl Write) -> io::Result<()> {
    let length_ns = (report.range.1 - report.range.0) as f64 * 1e6;
    let (unit, name) = (report.unit, report.unit.name());
    writeln!(out, "## Services\n\n| service | {name} | mean | change |\n|---|---:|---:|---:|")?;
    let present = report.services.iter().filter(|one| one.now > 0.0);
    for ServiceValues { name, now, before } in present.clone().take(limit) {
        let mean = match unit {
            ReportUnit::Nanoseconds => format!("{} processors", significant(now / length_ns.max(1.0))),
            ReportUnit::Count => format!("{} a second", significant(1e9 * now / length_ns.max(1.0))),
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
    writeln!(out)
}

fn show_functions(report: &StoreReport, limit: usize, out: &mut impl Write) -> io::Result<()> {
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
    writeln!(out)
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
        let time = |ns| ReportUnit::Nanoseconds.text(ns);
        assert_eq!([5e9, 600e9, 9e12].map(time), ["5.0 s", "10.0 min", "2.5 h"]);
        assert_eq!(ReportUnit::of("process_cpu:samples:count:cpu:nanoseconds").text(12.0), "12");
    }
}
