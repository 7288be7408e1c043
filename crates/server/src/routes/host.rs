//! The host names that a server without tokens answers to: those of this machine.
//!
//! A page of another site can point its own name at a loopback address (DNS rebinding) and then read the answers from there, as the
//! browser considers both the same site. It can't choose the `Host` header of its requests: that is its own name. No site's name is without a
//! dot (RFC 7085 says why), so that names from /etc/hosts and of containers are accepted.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::{ApiError, ErrorCode};

/// Admits requests whose host is missing, has no dot, or is an address.
pub(super) async fn check(request: Request, next: Next) -> Response {
    let named = request.headers().get(header::HOST).map(|host| host.to_str().unwrap_or("?").to_owned());
    let named = named.or_else(|| request.uri().authority().map(|authority| authority.as_str().to_owned()));
    match named {
        Some(name) if !is_ours(&name) => {
            let name: String = name.chars().take(100).collect();
            let message = format!(
                "without tokens this server answers to localhost, names without a dot and addresses, not to {name:?}; a proxy before it has to send Host: localhost"
            );
            ApiError::new(ErrorCode::PermissionDenied, message).into_response()
        }
        _ => next.run(request).await,
    }
}

/// Whether a name, with or without a port, can't belong to another site.
fn is_ours(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let is_plain =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    is_plain || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_no_site_can_have_are_ours() {
        for ours in [
            "localhost",
            "localhost:4041",
            "LOCALHOST:1",
            "127.0.0.1:4041",
            "[::1]:80",
            "10.0.0.7",
            "plumb:4041",
        ] {
            assert!(is_ours(ours), "{ours}");
        }
        for other in [
            "evil.example",
            "evil.example:4041",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "evil.example.",
            "a b",
            "",
        ] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
