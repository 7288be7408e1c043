//! `plumb query`: asks a server for functions, callers, series, a verdict or a whole profile.

mod series;
mod verdict;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use plumb_server::default_type;
use serde::Deserialize;

use crate::examples;
use crate::exit::Exit;
use crate::http::Client;
use crate::newfile;
use crate::terminal::{Output, finish};

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
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:4041")]
    to: String,
    /// Label selector, such as '{service_name="api"}'
    #[arg(long, value_name = "SELECTOR", default_value = "{}")]
    query: String,
    /// Profile type [default: CPU time, or the only one that matches]
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Begin: now-1h, or seconds or milliseconds since 1970
    #[arg(long, value_name = "TIME", default_value = "now-1h")]
    from: String,
    /// End
    #[arg(long, value_name = "TIME", default_value = "now")]
    until: String,
    /// Most rows
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// With series: a row per value of this label (repeatable) [default: service_name]
    #[arg(long, value_name = "LABEL")]
    by: Vec<String>,
    /// Output format, if the extension does not select it
    ///
    /// pprof, pprof.gz, speedscope, firefox, trace, callgrind, folded, otlp, csv, or plumb for a recording.
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// File to write an export to
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// File that holds a token
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,
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
    /// Sums over time
    Series,
    /// Largest cause of processor time, as plumb explain finds it
    Verdict,
    /// All samples, as a file
    Export,
}

/// Response to [`What::Functions`].
#[derive(Deserialize)]
struct Table {
    total: i64,
    rows: Vec<FunctionRow>,
}

#[derive(Deserialize)]
struct FunctionRow {
    function: String,
    #[serde(rename = "self")]
    own: i64,
    total: i64,
}

/// Response to [`What::Callers`].
#[derive(Deserialize)]
struct Neighbours {
    #[serde(rename = "self")]
    own: i64,
    total: i64,
    callers: Vec<CallRow>,
    callees: Vec<CallRow>,
}

#[derive(Deserialize)]
struct CallRow {
    function: String,
    total: i64,
}

/// Runs `plumb query`.
pub fn run(args: Args) -> Result<Exit> {
    let client = Client::new(&args.to, args.token.as_deref())?;
    let limit = args.limit.to_string();
    let mut parameters =
        vec![("query", args.query.as_str()), ("from", args.from.as_str()), ("until", args.until.as_str())];
    let kind = match (args.what, &args.kind) {
        (What::Services | What::Labels | What::Types, _) => String::new(),
        (_, Some(kind)) => kind.clone(),
        (_, None) => {
            let types = client.get("/api/v1/types", &parameters)?;
            let types: Vec<String> = serde_json::from_slice(&types).with_context(|| unexpected(&args))?;
            let kind = default_type(&types).map_err(|several| anyhow!("{several} (--type)"))?;
            kind.to_owned()
        }
    };
    if !kind.is_empty() {
        parameters.push(("type", &kind));
    }
    let path = match args.what {
        What::Services => "/api/v1/services",
        What::Labels => "/api/v1/labels",
        What::Types => "/api/v1/types",
        What::Functions => "/api/v1/functions",
        What::Callers => "/api/v1/function",
        What::Series => "/api/v1/series",
        What::Verdict => "/api/v1/verdict",
        What::Export => "/api/v1/export",
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
        What::Services | What::Types | What::Verdict => {}
    }
    let answer = client.get(path, &parameters)?;
    if args.what == What::Export {
        return export(&args, &answer);
    }
    let mut out = Output::stdout();
    finish(show(&args, &kind, &answer, &mut out).and_then(|()| Ok(out.flush()?)))
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
        return finish(std::io::stdout().lock().write_all(answer).map_err(Into::into));
    };
    newfile::write(path, answer)?;
    Ok(Exit::Success)
}

fn unexpected(args: &Args) -> String {
    format!("cannot understand the answer of {}", args.to)
}

fn show(args: &Args, kind: &str, answer: &[u8], out: &mut impl Write) -> Result<()> {
    let unexpected = || unexpected(args);
    if args.json {
        out.write_all(answer)?;
        return Ok(writeln!(out)?);
    }
    match args.what {
        What::Functions => {
            let table: Table = serde_json::from_slice(answer).with_context(unexpected)?;
            if table.rows.is_empty() {
                return nothing(args);
            }
            let share = |value: i64| 100.0 * value as f64 / table.total.max(1) as f64;
            writeln!(out, "{:>7} {:>7}  function", "self", "total")?;
            for row in &table.rows {
                writeln!(out, "{:>6.1}% {:>6.1}%  {}", share(row.own), share(row.total), row.function)?;
            }
        }
        What::Callers => {
            let found: Neighbours = serde_json::from_slice(answer).with_context(unexpected)?;
            if found.total == 0 {
                return nothing(args);
            }
            let share = |value: i64| 100.0 * value as f64 / found.total as f64;
            writeln!(out, "{:>6.1}%  in the function itself", share(found.own))?;
            for (head, rows) in [("callers", &found.callers), ("callees", &found.callees)] {
                writeln!(out, "\n{head}")?;
                for row in rows.iter().take(args.limit) {
                    let name = if row.function.is_empty() { "[outermost frame]" } else { &row.function };
                    writeln!(out, "{:>6.1}%  {name}", share(row.total))?;
                }
            }
        }
        What::Series => {
            let rows: Vec<series::SeriesRow> = serde_json::from_slice(answer).with_context(unexpected)?;
            if rows.is_empty() {
                return nothing(args);
            }
            series::show(&rows, kind, out)?;
        }
        What::Verdict => {
            let report: verdict::Report = serde_json::from_slice(answer).with_context(unexpected)?;
            verdict::show(&report, args.limit, &url(args, kind), out)?;
        }
        _ => {
            let names: Vec<String> = serde_json::from_slice(answer).with_context(unexpected)?;
            if names.is_empty() {
                return nothing(args);
            }
            names.iter().try_for_each(|name| writeln!(out, "{name}"))?;
        }
    }
    Ok(())
}

/// The URL at which other commands read what is selected.
fn url(args: &Args, kind: &str) -> String {
    let mut parameters = form_urlencoded::Serializer::new(String::new());
    for (name, value) in
        [("query", &*args.query), ("type", kind), ("from", &args.from), ("until", &args.until)]
    {
        parameters.append_pair(name, value);
    }
    format!("{}/?{}", args.to.trim_end_matches('/'), parameters.finish())
}

/// The error for an empty answer, with a command to try next.
fn nothing(args: &Args) -> Result<()> {
    bail!(
        "no profiles match {} from {} until {}; list the services that have some: plumb query services --from now-30d",
        args.query,
        args.from,
        args.until
    )
}
