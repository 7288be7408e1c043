//! Answers that other commands show: builds their command lines, which read the server's selection by URL.

use anyhow::{Result, anyhow};
use plumb_server::moment;

use super::{Args, What, url_of};
use crate::args::AccessArgs;
use crate::exit::wrong_usage;

/// The arguments of that command; `None` if `plumb query` prints the answer itself.
pub(super) fn words(args: &Args) -> Result<Option<Vec<String>>> {
    let here = url_of(args, &args.query, (args.from(), &args.until), args.kind.as_deref());
    let mut words: Vec<String> = match args.what {
        What::Tree => ["report", "--top-down", &here].map(str::to_owned).into(),
        What::Flame => vec!["flame".to_owned(), here],
        What::Diff => vec!["diff".to_owned(), before(args)?, here],
        _ => return Ok(None),
    };
    let AccessArgs { token, ca_cert } = &args.access;
    for (given, option, variable) in
        [(token, "--token", "PLUMB_TOKEN_FILE"), (ca_cert, "--ca-cert", "PLUMB_CA_CERT")]
    {
        if given.is_some() {
            let hint = format!("set {variable} to the file");
            return Err(wrong_usage(format!("tree, flame and diff take no {option}; {hint}")));
        }
    }
    words.insert(0, "plumb".to_owned());
    if args.json {
        words.push("--json".to_owned());
    }
    if let Some(output) = &args.output {
        words.extend(["-o".to_owned(), output.to_string_lossy().into_owned()]);
    }
    Ok(Some(words))
}

/// The URL of the base range for a comparison.
fn before(args: &Args) -> Result<String> {
    let query = args.base.base_query.as_deref().unwrap_or(&args.query);
    let kind = args.kind.as_deref();
    if let (Some(from), Some(until)) = (&args.base.base_from, &args.base.base_until) {
        return Ok(url_of(args, query, (from, until), kind));
    }
    if args.base.base_query.is_some() {
        return Ok(url_of(args, query, (args.from(), &args.until), kind));
    }
    let now = moment::now();
    let time =
        |text: &str| moment::parse(text, now).ok_or_else(|| anyhow!("{text} is no time; write now-1h"));
    let (from, until) = (time(args.from())?, time(&args.until)?);
    let begin = from.saturating_sub(until.saturating_sub(from)).max(1);
    Ok(url_of(args, query, (&begin.to_string(), &from.to_string()), kind))
}
