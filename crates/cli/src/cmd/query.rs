//! `plumb query`: queries a server for functions, callers, series, findings, a verdict, a report or a whole profile.

mod findings;
mod options;
mod passed_on;
mod report;
mod series;
mod verdict;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use plumb_documents::findings::Findings;
use plumb_documents::functions::{FunctionValues, NeighbourValues};
use plumb_server::{Series, default_type, moment};

use crate::args::AccessArgs;
use crate::examples;
use crate::exit::Exit;
use crate::http::Client;
use crate::newfile;
use crate::terminal::{Output, finish, printable, stdout_bytes};

/// Default number of rows.
const ROWS: usize = 20;
/// Most services named in an error.
const SERVICES: usize = 8;

/// Arguments of `plumb query`.
#[derive(clap::Args, Debug)]
#[command(after_help = examples::QUERY)]
pub struct Args {
    /// Kind of answer
    #[arg(value_enum)]
    what: What,
    /// Function whose callers and callees are shown (callers), or label whose values are listed (labels)
    name: Option<String>,
    /// URL of the server
    #[arg(long = "server", alias = "to", value_name = "URL", default_value = "http://127.0.0.1:4041")]
    to: String,
    /// Label selector, such as '{service_name="api"}'
    #[arg(long, value_name = "SELECTOR", default_value = "{}")]
    query: String,
    /// Profile type [default: CPU time, or the only one that matches]
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Start, such as now-6h or 2026-11-24T14:00 (UTC) [default: now-1h; of a report now-7d]
    ///
    /// Also 2026-11-24T14:00+01:00, and seconds or milliseconds since 1970.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// End
    #[arg(long, value_name = "TIME", default_value = "now")]
    until: String,
    /// With functions, callers, series, verdict, findings, report: most rows [default: 20; of a report 10]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// With series: a row per value of this label (repeatable) [default: service_name]
    #[arg(long, value_name = "LABEL")]
    by: Vec<String>,
    /// Output format, if the extension does not select it
    ///
    /// Only with export: pprof, pprof.gz, speedscope, firefox, trace, callgrind, folded, otlp, csv, or plumb for a recording.
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// With export, flame, diff, report: file to write
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    base: BaseArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print Markdown
    ///
    /// The only format of a report.
    #[arg(long)]
    md: bool,
    #[command(flatten)]
    access: AccessArgs,
}

/// Time range to compare with, for [`What::Diff`].
#[derive(clap::Args, Debug)]
struct BaseArgs {
    /// With diff: start of the base range [default: the same length of time before the range]
    #[arg(long, value_name = "TIME", requires = "base_until")]
    base_from: Option<String>,
    /// With diff: end of the base range
    #[arg(long, value_name = "TIME", requires = "base_from")]
    base_until: Option<String>,
    /// With diff: label selector of the base [default: --query]
    #[arg(long, value_name = "SELECTOR")]
    base_query: Option<String>,
}

/// Kinds of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Services that have profiles
    Services,
    /// Labels, or the values of one
    Labels,
    /// Profile types
    Types,
    /// Functions, the most expensive by themselves first
    #[value(alias = "top")]
    Functions,
    /// Callers and callees of a function
    Callers,
    /// Call tree, as plumb report --top-down shows it
    Tree,
    /// Flame graph, as plumb flame writes it
    Flame,
    /// Changes since the time before, as plumb diff marks them
    Diff,
    /// Sums over time
    Series,
    /// Largest cause of processor time, as plumb explain finds it
    Verdict,
    /// Findings in all services, the largest first
    Findings,
    /// Findings, services and functions of a week against the week before, in Markdown
    Report,
    /// All samples, as a file
    Export,
}

/// The command line of another command that prints the answer, if there is one.
///
/// # Errors
/// An option does not apply to the answer.
pub fn passed_on(args: &Args) -> Result<Option<Vec<String>>> {
    options::check(args)?;
    passed_on::words(args)
}

impl Args {
    /// Start of the time range.
    fn from(&self) -> &str {
        let default = if self.what == What::Report { "now-7d" } else { "now-1h" };
        self.from.as_deref().unwrap_or(default)
    }

    /// Most rows to print.
    fn rows(&self) -> usize {
        self.limit.unwrap_or(ROWS)
    }
}

/// Runs `plumb query`.
pub fn run(args: Args) -> Result<Exit> {
    let client = Client::new(&args.to, &args.access)?;
    let limit = args.rows().to_string();
    let mut parameters =
        vec![("query", args.query.as_str()), ("from", args.from()), ("until", args.until.as_str())];
    let kind = match (args.what, &args.kind) {
        (What::Services | What::Labels | What::Types, _) => String::new(),
        (_, Some(kind)) => kind.clone(),
        (_, None) => {
            let types = client.get("/api/v1/types", &parameters)?;
            let types: Vec<String> = serde_json::from_slice(&types).with_context(|| unexpected(&args))?;
            if types.is_empty() && !args.json {
                nothing(&args, &client)?;
            }
            let kind = default_type(&types).map_err(|several| anyhow!("{several} (--type)"))?;
            kind.to_owned()
        }
    };
    if !kind.is_empty() {
        parameters.push(("type", &kind));
    }
    if args.what == What::Report {
        return report(&args, &client, &kind);
    }
    let path = match args.what {
        What::Services => "/api/v1/services",
        What::Labels => "/api/v1/labels",
        What::Types => "/api/v1/types",
        What::Functions => "/api/v1/functions",
        What::Callers => "/api/v1/function",
        What::Series => "/api/v1/series",
        What::Verdict => "/api/v1/verdict",
        What::Findings => "/api/v1/findings",
        What::Export | What::Report | What::Tree | What::Flame | What::Diff => "/api/v1/export",
    };
    match args.what {
        What::Functions => parameters.push(("limit", &limit)),
        What::Export => parameters.push(("format", format(&args))),
        What::Callers | What::Labels => parameters.extend(args.name.as_deref().map(|name| ("name", name))),
        What::Series => {
            parameters.push(("limit", &limit));
            parameters.extend(args.by.iter().map(|label| ("by", label.as_str())));
            if args.by.is_empty() {
                parameters.push(("by", "service_name"));
            }
        }
        What::Services | What::Types | What::Verdict | What::Findings | What::Report => {}
        What::Tree | What::Flame | What::Diff => {
            bail!("plumb query {:?} is shown by another command", args.what)
        }
    }
    let answer = client.get(path, &parameters)?;
    if args.what == What::Export {
        return export(&args, &answer);
    }
    let mut out = Output::stdout();
    finish(show(&args, &client, (&kind, &answer), &mut out).and_then(|()| Ok(out.flush()?)))
}

/// The format of an export: --format, or the one that the file's extension selects.
fn format(args: &Args) -> &str {
    if let Some(format) = &args.format {
        return format;
    }
    let name = args.output.as_ref().map(|path| path.to_string_lossy()).unwrap_or_default();
    let known = [
        (".speedscope.json", "speedscope"),
        (".firefox.json", "firefox"),
        (".callgrind", "callgrind"),
        (".trace.json", "trace"),
        (".otlp", "otlp"),
        (".folded", "folded"),
        (".csv", "csv"),
        (".plumb", "plumb"),
        (".pb", "pprof"),
        (".pprof", "pprof"),
    ];
    known.into_iter().find(|(end, _)| name.ends_with(end)).map_or("pprof.gz", |(_, format)| format)
}

fn export(args: &Args, answer: &[u8]) -> Result<Exit> {
    let Some(path) = &args.output else {
        return finish(stdout_bytes().and_then(|mut out| out.write_all(answer)).map_err(Into::into));
    };
    newfile::write(path, answer)?;
    Ok(Exit::Success)
}

fn report(args: &Args, client: &Client, kind: &str) -> Result<Exit> {
    let mut text = Vec::new();
    report::write(args, client, kind, &mut text)?;
    export(args, &text)
}

fn unexpected(args: &Args) -> String {
    format!("cannot understand the answer of {}", args.to)
}

fn show(args: &Args, client: &Client, (kind, answer): (&str, &[u8]), out: &mut impl Write) -> Result<()> {
    let unexpected = || unexpected(args);
    if args.json {
        out.write_all(answer)?;
        return Ok(writeln!(out)?);
    }
    match args.what {
        What::Functions => {
            let table: FunctionValues = serde_json::from_slice(answer).with_context(unexpected)?;
            if table.rows.is_empty() {
                return nothing(args, client);
            }
            let share = |value: i64| 100.0 * value as f64 / table.total.max(1) as f64;
            writeln!(out, "{:>7} {:>7}  function", "self", "total")?;
            for row in &table.rows {
                writeln!(out, "{:>6.1}% {:>6.1}%  {}", share(row.own), share(row.total), row.function)?;
            }
        }
        What::Callers => {
            let found: NeighbourValues = serde_json::from_slice(answer).with_context(unexpected)?;
            if found.total == 0 {
                return nothing(args, client);
            }
            show_neighbours(&found, args.rows(), out)?;
        }
        What::Series => {
            let rows: Vec<Series> = serde_json::from_slice(answer).with_context(unexpected)?;
            if rows.is_empty() {
                return nothing(args, client);
            }
            series::show(&rows, kind, whole_sum(args, client, kind, &rows)?, out)?;
        }
        What::Verdict => {
            let report: verdict::Report = serde_json::from_slice(answer).with_context(unexpected)?;
            verdict::show(&report, args.rows(), &url(args, &args.query, kind), out)?;
        }
        What::Findings => {
            let found: Findings = serde_json::from_slice(answer).with_context(unexpected)?;
            if found.services == 0 {
                return nothing(args, client);
            }
            let until = moment::parse(&args.until, moment::now());
            findings::show(&found, args.rows(), until, |selector| url(args, selector, kind), out)?;
        }
        _ => {
            let names: Vec<String> = serde_json::from_slice(answer).with_context(unexpected)?;
            if names.is_empty() {
                return nothing(args, client);
            }
            names.iter().try_for_each(|name| writeln!(out, "{}", printable(name)))?;
        }
    }
    Ok(())
}

/// The sum of all groups; the answer has only the largest ones.
fn whole_sum(args: &Args, client: &Client, kind: &str, rows: &[Series]) -> Result<f64> {
    let shown = series::sum_of(rows);
    if rows.len() < args.rows() {
        return Ok(shown);
    }
    let parameters = [
        ("query", args.query.as_str()),
        ("from", args.from()),
        ("until", args.until.as_str()),
        ("type", kind),
    ];
    let whole = client.get("/api/v1/series", &parameters)?;
    let whole: Vec<Series> = serde_json::from_slice(&whole).with_context(|| unexpected(args))?;
    Ok(series::sum_of(&whole).max(shown))
}

fn show_neighbours(found: &NeighbourValues, limit: usize, out: &mut impl Write) -> Result<()> {
    let share = |value: i64| 100.0 * value as f64 / found.total as f64;
    writeln!(out, "{:>6.1}%  in the function itself", share(found.own))?;
    for (head, rows) in [("callers", &found.callers), ("callees", &found.callees)] {
        writeln!(out, "\n{head}")?;
        for row in rows.iter().take(limit) {
            let name = if row.function.is_empty() { "[outermost frame]" } else { &row.function };
            writeln!(out, "{:>6.1}%  {name}", share(row.total))?;
        }
    }
    Ok(())
}

/// The URL from which other commands read the selection.
fn url(args: &Args, selector: &str, kind: &str) -> String {
    url_of(args, selector, (args.from(), &args.until), Some(kind))
}

fn url_of(args: &Args, selector: &str, (from, until): (&str, &str), kind: Option<&str>) -> String {
    let mut parameters = form_urlencoded::Serializer::new(String::new());
    parameters.append_pair("query", selector);
    kind.into_iter().for_each(|kind| _ = parameters.append_pair("type", kind));
    parameters.append_pair("from", from).append_pair("until", until);
    format!("{}/?{}", args.to.trim_end_matches('/'), parameters.finish())
}

/// The error for a label that no profile has, if that is the case.
fn no_label(args: &Args, client: &Client) -> Result<()> {
    let Some(name) = args.name.as_deref().filter(|_| args.what == What::Labels) else { return Ok(()) };
    let parameters = [("query", args.query.as_str()), ("from", args.from()), ("until", args.until.as_str())];
    let labels = client.get("/api/v1/labels", &parameters)?;
    let labels: Vec<String> = serde_json::from_slice(&labels).with_context(|| unexpected(args))?;
    if labels.is_empty() {
        return Ok(());
    }
    let shown: Vec<_> = labels.iter().map(|name| printable(name)).collect();
    bail!("no profile has the label {}; labels that some have: {}", printable(name), shown.join(", "))
}

/// The error for an empty answer, with a command to try next.
fn nothing(args: &Args, client: &Client) -> Result<()> {
    no_label(args, client)?;
    let none = format!(
        "no profiles match {} from {} until {}; choose another time by --from",
        args.query,
        args.from(),
        args.until
    );
    // A server may refuse to search all of time.
    let Ok(all) = client.get("/api/v1/services", &[("from", "1"), ("until", "now")]) else { bail!(none) };
    let all: Vec<String> = serde_json::from_slice(&all).with_context(|| unexpected(args))?;
    if all.is_empty() {
        bail!("{} has no profiles yet; to send one: plumb push FILE, or run plumb agent", args.to);
    }
    let shown: Vec<String> = all.iter().take(SERVICES).map(|name| printable(name).into_owned()).collect();
    let more = if all.len() > SERVICES { ", …" } else { "" };
    bail!("{none}; services that have some: {}{more}", shown.join(", "))
}
