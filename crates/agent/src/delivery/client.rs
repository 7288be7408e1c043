//! Requests to the server, and the meaning of its answers.

use std::time::Duration;

use plumb_formats::otlp::{HTTP_PATH, refusal};
use ureq::http::StatusCode;

use crate::connection::Connection;
use crate::error::AgentError;
use crate::options::AgentOptions;

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read at most.
const ANSWER: u64 = 64 << 10;

/// Outcome of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The server accepted it. It may have rejected some of its profiles: a sentence about that.
    Taken(Option<String>),
    /// The server may accept it later: why it did not now, and after what delay, if the server says so.
    Later(String, Option<Duration>),
    /// The server would reject it every time: why.
    Refused(String),
}

/// An HTTP client that sends profiles.
pub(crate) struct Client(Connection);

impl Client {
    /// A client for the server of `options`.
    pub fn new(options: &AgentOptions) -> Result<Self, AgentError> {
        Ok(Self(Connection::new(options, TIMEOUT)?))
    }

    /// Sends a body that is already compressed.
    pub fn send(&self, body: &[u8]) -> Outcome {
        let request = self.0.request(ureq::Agent::post, HTTP_PATH);
        let request =
            request.header("Content-Type", "application/x-protobuf").header("Content-Encoding", "gzip");
        let mut response = match request.send(body) {
            Ok(response) => response,
            Err(error) => return Outcome::Later(error.to_string(), None),
        };
        let status = response.status();
        let header = response.headers().get("Retry-After").and_then(|value| value.to_str().ok());
        let after = header.and_then(|value| value.parse().ok()).map(Duration::from_secs);
        let answer = response.body_mut().with_config().limit(ANSWER).read_to_vec().unwrap_or_default();
        if status.is_success() {
            return Outcome::Taken(partial(&answer));
        }
        let text: String = String::from_utf8_lossy(&answer).chars().take(300).collect();
        let why = format!("status {}: {}", status.as_u16(), text.trim());
        if is_final(status) { Outcome::Refused(why) } else { Outcome::Later(why, after) }
    }
}

/// Whether the same request will always get the same answer. Missing permissions, a wrong address or a failing proxy can be fixed while the request
/// waits.
fn is_final(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 405 | 406 | 411 | 413..=415 | 422)
}

fn partial(answer: &[u8]) -> Option<String> {
    let partial = refusal(answer)?;
    Some(format!("{} profiles rejected: {}", partial.rejected_profiles, partial.error_message))
}
