//! Refuses requests that a browser sends for a page of another site or port (cross-site request forgery).
//!
//! A page can make a browser post to a server on this machine, or ask it for costly answers, without being allowed to read them. Browsers say
//! where a request comes from: `Sec-Fetch-Site` (W3C, Fetch Metadata Request Headers) and `Origin` (RFC 6454), which pages can't set. Programs send
//! neither and are admitted. So is following a link.

use axum::extract::Request;
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::{ApiError, ErrorCode};

const SITE: &str = "sec-fetch-site";
const MODE: &str = "sec-fetch-mode";
const DESTINATION: &str = "sec-fetch-dest";
/// The host that a browser asked a proxy for. Pages can't set it without permission from here.
const FORWARDED_HOST: &str = "x-forwarded-host";

/// Admits requests of programs, of pages of this server, and of links.
pub(super) async fn check(request: Request, next: Next) -> Response {
    if is_admitted(request.method(), request.headers()) {
        return next.run(request).await;
    }
    let message = "this request was sent by a page of another site, which can't use this server; open this server's own page. A proxy before it \
                   has to keep the header Host or set X-Forwarded-Host";
    ApiError::new(ErrorCode::PermissionDenied, message).into_response()
}

fn is_admitted(method: &Method, headers: &HeaderMap) -> bool {
    let value = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let is_read = method == Method::GET || method == Method::HEAD;
    match value(SITE) {
        Some("same-origin" | "none") => true,
        // `object`, `iframe` and others navigate too.
        Some(_) => is_read && value(MODE) == Some("navigate") && value(DESTINATION) == Some("document"),
        // Browsers send it only over TLS and to this machine.
        None => value("origin").is_none_or(|origin| is_same(origin, headers)),
    }
}

/// Whether an origin is the host that was asked for.
fn is_same(origin: &str, headers: &HeaderMap) -> bool {
    let Some((_, authority)) = origin.split_once("://") else { return false };
    let asked = [header::HOST.as_str(), FORWARDED_HOST].map(|name| headers.get(name));
    asked.into_iter().flatten().any(|host| host.as_bytes().eq_ignore_ascii_case(authority.as_bytes()))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn admits(method: &Method, headers: &[(&'static str, &'static str)]) -> bool {
        let headers = headers.iter().map(|&(name, value)| {
            (name.parse::<header::HeaderName>().unwrap(), HeaderValue::from_static(value))
        });
        is_admitted(method, &headers.collect())
    }

    #[test]
    fn programs_own_pages_and_links_are_admitted() {
        let host = ("host", "127.0.0.1:4041");
        assert!(admits(&Method::POST, &[host]));
        assert!(admits(&Method::POST, &[host, (SITE, "same-origin"), ("origin", "http://127.0.0.1:4041")]));
        assert!(admits(&Method::GET, &[host, (SITE, "none"), (MODE, "navigate")]));
        assert!(admits(
            &Method::GET,
            &[host, (SITE, "cross-site"), (MODE, "navigate"), (DESTINATION, "document")]
        ));
        assert!(admits(&Method::POST, &[("host", "Box:4041"), ("origin", "http://box:4041")]));
        let forwarded =
            [("host", "localhost"), (FORWARDED_HOST, "plumb.example"), ("origin", "https://plumb.example")];
        assert!(admits(&Method::POST, &forwarded));
    }

    #[test]
    fn pages_of_other_sites_and_ports_are_refused() {
        let host = ("host", "127.0.0.1:4041");
        for site in ["cross-site", "same-site", "anything"] {
            assert!(!admits(&Method::POST, &[host, (SITE, site), (MODE, "no-cors")]), "{site}");
            assert!(
                !admits(&Method::GET, &[host, (SITE, site), (MODE, "no-cors"), (DESTINATION, "image")]),
                "{site}"
            );
            assert!(
                !admits(&Method::GET, &[host, (SITE, site), (MODE, "navigate"), (DESTINATION, "iframe")]),
                "{site}"
            );
            // A form.
            assert!(
                !admits(&Method::POST, &[host, (SITE, site), (MODE, "navigate"), (DESTINATION, "document")]),
                "{site}"
            );
        }
        for origin in ["http://127.0.0.1:8000", "http://evil.example", "null", ""] {
            assert!(!admits(&Method::POST, &[host, ("origin", origin)]), "{origin:?}");
        }
    }
}
