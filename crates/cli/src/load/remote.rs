//! Profiles at a URL: a selection on a plumb server, or a program's own endpoint, such as Go's `/debug/pprof/profile`.
//!
//! Elsewhere: parsing the bytes (`load`).

use anyhow::{Context, Result};

use crate::args::AccessArgs;
use crate::http::Client;

/// Path at which a plumb server exports a selection.
const EXPORT: &str = "/api/v1/export";

/// Downloads the profile at a URL. A URL without a path is a plumb server's: its parameters `query`, `type`, `from` and `until` select.
pub(super) fn fetch(url: &str) -> Result<Vec<u8>> {
    let (server, path, parameters) = split(url);
    let client = Client::new(server, &AccessArgs::default())?;
    let path = if path.is_empty() { EXPORT } else { path };
    let mut pairs: Vec<(String, String)> =
        form_urlencoded::parse(parameters.as_bytes()).into_owned().collect();
    if path == EXPORT && !pairs.iter().any(|(name, _)| name == "format") {
        pairs.push(("format".to_owned(), "pprof".to_owned()));
    }
    let pairs: Vec<(&str, &str)> =
        pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    client.get(path, &pairs).with_context(|| format!("{url}: no profile from there"))
}

/// Splits a URL into scheme and host, path, and query.
fn split(url: &str) -> (&str, &str, &str) {
    let (place, parameters) = url.split_once('?').unwrap_or((url, ""));
    let host = place.find("://").map_or(0, |scheme| scheme + 3);
    let end = place[host..].find('/').map_or(place.len(), |slash| host + slash);
    (&place[..end], place[end..].trim_end_matches('/'), parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_server_a_path_and_parameters() {
        assert_eq!(split("http://a:1"), ("http://a:1", "", ""));
        assert_eq!(split("http://a:1/?from=now-1h"), ("http://a:1", "", "from=now-1h"));
        assert_eq!(split("https://a/debug/pprof/heap"), ("https://a", "/debug/pprof/heap", ""));
        assert_eq!(split("http://a?query={x=\"/?\"}"), ("http://a", "", "query={x=\"/?\"}"));
    }
}
