//! Requests to the server, and what its answers mean for them.

use std::time::Duration;

use plumb_formats::otlp::{HTTP_PATH, refusal};
use ureq::http::StatusCode;

use crate::connection::Connection;
use crate::error::AgentError;
use crate::options::AgentOptions;

/// Longest time that a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer that is read, in bytes.
const ANSWER: u64 = 64 << 10;

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The server has it. Some of its profiles may have been refused: a sentence on that.
    Taken(Option<String>),
    /// It may be taken later: why not now, and after what time, if the server says so.
    Later(String, Option<Duration>),
    /// It would be refused each time: why.
    Refused(String),
}

/// What sends requests.
pub(crate) struct Client(Connection);

impl Client {
    /// For the server of the options.
    pub fn new(options: &AgentOptions) -> Result<Self, AgentError> {
        Ok(Self(Connection::new(options, TIMEOUT)?))
    }

    /// Sends a body that is compressed already.
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

/// Whether the same request gets the same answer for ever. Rights, a wrong address and a proxy's mood can be mended while it waits.
fn is_final(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 405 | 406 | 411 | 413..=415 | 422)
}

fn partial(answer: &[u8]) -> Option<String> {
    let partial = refusal(answer)?;
    Some(format!("{} profiles rejected: {}", partial.rejected_profiles, partial.error_message))
}
