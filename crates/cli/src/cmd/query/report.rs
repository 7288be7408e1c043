//! `plumb query report`: asks a server for the numbers of the report on its profiles.
//!
//! All numbers are the server's: findings, series of both times, and the comparison of `plumb diff`. Elsewhere: the report.

use std::io::Write;

use anyhow::{Context, Result, anyhow};
use plumb_documents::store_report::{ComparisonRows, ReportUnit, StoreReport, services};
use plumb_server::{Series, moment};
use serde::de::DeserializeOwned;

use super::{Args, series, unexpected};
use crate::http::Client;

/// Default number of findings, services and functions.
const ROWS: usize = 10;

/// A time range in milliseconds since 1970.
type Range = (i64, i64);

/// Writes the report of the server's profiles of a type.
pub(super) fn write(args: &Args, client: &Client, kind: &str, out: &mut impl Write) -> Result<()> {
    let now = moment::now();
    let time =
        |text: &str| moment::parse(text, now).ok_or_else(|| anyhow!("{text} is not a time: write now-7d"));
    let range = (time(args.from())?, time(&args.until)?);
    let before = (range.0.saturating_sub(range.1.saturating_sub(range.0)).max(1), range.0);
    let asked = Asked { args, client, kind };
    let findings = asked.get("/api/v1/findings", range, &[])?;
    let services = services(asked.cpu(range)?, asked.cpu(before)?);
    let has_before = services.iter().any(|service| service.before > 0.0);
    let functions = has_before.then(|| asked.changes(range, before)).transpose()?;
    let report = StoreReport {
        range,
        range_text: [moment::text(range.0), moment::text(range.1)],
        unit: ReportUnit::of(kind),
        findings,
        services,
        functions: functions.map(ComparisonRows::into_changed),
    };
    Ok(report.write(args.limit.unwrap_or(ROWS), args.to.trim_end_matches('/'), out)?)
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
    fn cpu(&self, range: Range) -> Result<Vec<(String, f64)>> {
        let rows: Vec<Series> = self.get("/api/v1/series", range, &[("by", "service_name")])?;
        Ok(rows.iter().map(|row| (series::name(row), series::sum(row))).collect())
    }

    /// Functions of a range compared with those of the one before.
    fn changes(&self, range: Range, before: Range) -> Result<ComparisonRows> {
        let [from, until] = [before.0.to_string(), before.1.to_string()];
        let base = [("base-from", &*from), ("base-until", &*until)];
        self.get("/api/v1/selection/diff", range, &base)
    }
}
