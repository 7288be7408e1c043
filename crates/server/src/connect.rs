//! Connect's unary protocol: one message in a POST, one in the answer, both as protocol buffers or JSON.
//!
//! <https://connectrpc.com/docs/protocol>. Written by hand, as only this part of the protocol is needed, and `connectrpc` (0.9) requires its own
//! message types and a code generator.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use flate2::bufread;
use http_body_util::BodyExt;
use plumb_store::Tenant;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::NamedTempFile;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::app::{App, Context};
use crate::error::{ApiError, ErrorCode};
use crate::options::BodyLimits;

/// Largest zstd window, as a power of 2: a decoder keeps as much in memory.
const WINDOW_LOG: u32 = 24;

/// Largest question, in bytes.
const QUESTION: usize = 1 << 20;

/// Encoding of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Proto,
    Json,
}

/// An answer in both encodings.
pub(crate) trait Answer {
    fn proto(&self) -> Vec<u8>;
    fn json(&self) -> Result<Vec<u8>, serde_json::Error>;
}

impl<M: Message + Serialize> Answer for M {
    fn proto(&self) -> Vec<u8> {
        self.encode_to_vec()
    }

    fn json(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }
}

impl Codec {
    /// The encoding of the request's content type; `None` for an unknown one.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let content_type = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
        let kind = content_type.split(';').next().unwrap_or_default().trim();
        match kind.to_ascii_lowercase().as_str() {
            "application/proto" | "application/protobuf" | "application/x-protobuf" => Some(Self::Proto),
            "application/json" => Some(Self::Json),
            _ => None,
        }
    }

    fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Proto => "application/proto",
            Self::Json => "application/json",
        })
    }

    pub fn decode<M: Message + Default + DeserializeOwned>(self, bytes: &[u8]) -> Result<M, ApiError> {
        match self {
            Self::Proto => {
                M::decode(bytes).map_err(|error| ApiError::invalid(format!("malformed message: {error}")))
            }
            Self::Json if bytes.is_empty() => Ok(M::default()),
            Self::Json => serde_json::from_slice(bytes)
                .map_err(|error| ApiError::invalid(format!("malformed message: {error}"))),
        }
    }

    pub fn encode<A: Answer>(self, answer: &A) -> Result<Vec<u8>, ApiError> {
        match self {
            Self::Proto => Ok(answer.proto()),
            Self::Json => answer.json().map_err(|error| {
                ApiError::new(ErrorCode::Internal, format!("cannot write the answer: {error}"))
            }),
        }
    }

    pub fn response(self, body: Vec<u8>) -> Response {
        let mut response = Response::new(Body::from(body));
        response.headers_mut().insert(header::CONTENT_TYPE, self.content_type());
        response
    }
}

/// The answer to an unknown content type.
pub(crate) fn unknown_codec() -> Response {
    let accept = [("Accept-Post", "application/proto, application/json")];
    (StatusCode::UNSUPPORTED_MEDIA_TYPE, accept).into_response()
}

/// Answers a unary query.
pub(crate) async fn query<Q, A>(
    State(app): State<App>,
    request: Request,
    answer: fn(&Context, Q) -> Result<A, ApiError>,
) -> Response
where
    Q: Message + Default + DeserializeOwned + 'static,
    A: Answer + 'static,
{
    let (parts, body) = request.into_parts();
    let Some(codec) = Codec::of(&parts.headers) else { return unknown_codec() };
    let answered = async {
        let tenant = app.tenant(&parts.headers)?;
        let limits = BodyLimits { sent: QUESTION, unpacked: QUESTION, time: app.options.ingest.body_time };
        let bytes = read_body_within(&app, &parts.headers, body, &limits).await?;
        let question: Q = codec.decode(&bytes)?;
        app.query(tenant, move |context| codec.encode(&answer(context, question)?)).await
    };
    answered.await.map_or_else(IntoResponse::into_response, |body| codec.response(body))
}

/// The body of a request as it was sent.
pub(crate) struct PackedBody {
    bytes: Bytes,
    encoding: String,
}

impl PackedBody {
    /// The body, unpacked to at most `most` bytes. Takes long for a large one.
    pub fn unpacked(&self, most: usize) -> Result<Bytes, ApiError> {
        unpack(&self.encoding, self.bytes.clone(), most)
    }
}

/// Reads the body of a request of a tenant that sends profiles, unless the tenant exceeds its rate.
pub(crate) async fn read_body(
    app: &App,
    tenant: &Tenant,
    headers: &HeaderMap,
    body: Body,
) -> Result<PackedBody, ApiError> {
    let limits = &app.options.ingest;
    let rate = match app.admit(tenant) {
        Ok(rate) => rate,
        Err(error) => {
            app.rates.refused(tenant, pass_over(body, limits.body, limits.body_time).await);
            return Err(error);
        }
    };
    let packed = receive(app, headers, body, limits.body, limits.body_time).await?;
    if let Some(rate) = rate {
        app.rates.take(tenant, rate, packed.bytes.len() as u64, Instant::now());
    }
    Ok(packed)
}

/// Reads a refused body of at most `most` bytes without keeping it: a client that is still sending may miss the answer. Returns its size.
async fn pass_over(mut body: Body, most: usize, time: Duration) -> u64 {
    let mut bytes = 0_usize;
    let read = async {
        while let Some(Ok(frame)) = body.frame().await {
            bytes = bytes.saturating_add(frame.data_ref().map_or(0, Bytes::len));
            if bytes > most {
                break;
            }
        }
    };
    // A body that is late is not waited for.
    let _ = timeout(time, read).await;
    bytes as u64
}

/// Reads and unpacks a body within these limits.
pub(crate) async fn read_body_within(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    limits: &BodyLimits,
) -> Result<Bytes, ApiError> {
    receive(app, headers, body, limits.sent, limits.time).await?.unpacked(limits.unpacked)
}

async fn receive(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    most: usize,
    time: Duration,
) -> Result<PackedBody, ApiError> {
    let read = timeout(time, collect(Some(app), body, most)).await;
    let bytes = read.map_err(|_| late(time))??;
    app.metrics.received.inc_by(bytes.len() as u64);
    Ok(PackedBody { bytes, encoding: encoding(headers) })
}

/// Writes a body into a file in `folder` as it arrives, then unpacked to at most as many bytes as the limits allow into another: it is never in memory.
pub(crate) async fn read_file(
    app: &App,
    headers: &HeaderMap,
    mut body: Body,
    limits: &BodyLimits,
    folder: &Path,
) -> Result<NamedTempFile, ApiError> {
    let mut file = NamedTempFile::new_in(folder).map_err(unwritten)?;
    let written = async {
        let mut sent = 0_usize;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| ApiError::invalid(format!("the body ended early: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            sent = sent.saturating_add(data.len());
            if sent > limits.sent {
                return Err(too_large("body is", limits.sent));
            }
            // To the page cache: a small write that waits for no disk.
            file.write_all(&data).map_err(unwritten)?;
            app.metrics.received.inc_by(data.len() as u64);
        }
        Ok(file)
    };
    let file = timeout(limits.time, written).await.map_err(|_| late(limits.time))??;
    let encoding = encoding(headers);
    if matches!(&*encoding, "" | "identity") {
        return Ok(file);
    }
    let (folder, most) = (folder.to_owned(), limits.unpacked);
    let unpacked = tokio::task::spawn_blocking(move || unpacked_file(&encoding, &file, &folder, most));
    unpacked.await.map_err(|_| ApiError::new(ErrorCode::Internal, "unpacking the file ended unexpectedly"))?
}

fn unpacked_file(
    encoding: &str,
    packed: &NamedTempFile,
    folder: &Path,
    most: usize,
) -> Result<NamedTempFile, ApiError> {
    let from = BufReader::new(packed.reopen().map_err(unwritten)?);
    let mut into = NamedTempFile::new_in(folder).map_err(unwritten)?;
    let mut limited = decoder(encoding, from)?.take((most as u64).saturating_add(1));
    let copied = std::io::copy(&mut limited, &mut into);
    let length = copied.map_err(|error| ApiError::invalid(format!("malformed {encoding} data: {error}")))?;
    if length > most as u64 { Err(too_large("data unpack to", most)) } else { Ok(into) }
}

fn unwritten(error: std::io::Error) -> ApiError {
    ApiError::new(ErrorCode::Unavailable, format!("cannot write a temporary file: {error}"))
}

fn late(time: Duration) -> ApiError {
    let seconds = time.as_secs();
    ApiError::new(ErrorCode::DeadlineExceeded, format!("the body did not arrive within {seconds} s"))
}

fn encoding(headers: &HeaderMap) -> String {
    let encoding = headers.get(header::CONTENT_ENCODING);
    encoding.map_or("identity", |one| one.to_str().unwrap_or("?")).trim().to_owned()
}

/// Unpacks what is compressed in one of the supported ways.
fn decoder<'r>(encoding: &str, from: impl BufRead + 'r) -> Result<Box<dyn Read + 'r>, ApiError> {
    match encoding {
        "gzip" => Ok(Box::new(bufread::MultiGzDecoder::new(from))),
        "zstd" => {
            let malformed = |error| ApiError::invalid(format!("malformed zstd data: {error}"));
            let mut decoder = zstd::stream::read::Decoder::with_buffer(from).map_err(malformed)?;
            decoder.window_log_max(WINDOW_LOG).map_err(malformed)?;
            Ok(Box::new(decoder))
        }
        other => {
            let message =
                format!("unknown compression {other:?}: supported encodings are gzip, zstd, identity");
            Err(ApiError::new(ErrorCode::Unimplemented, message))
        }
    }
}

/// Unpacks a body to at most `most` bytes.
pub(crate) fn unpack(encoding: &str, bytes: Bytes, most: usize) -> Result<Bytes, ApiError> {
    match encoding {
        "" | "identity" if bytes.len() > most => Err(too_large("body is", most)),
        "" | "identity" => Ok(bytes),
        other => bounded(decoder(other, &*bytes)?, bytes.len(), most, other).map(Bytes::from),
    }
}

/// Bytes in memory, with the room that they take.
struct Received {
    bytes: BytesMut,
    /// One permit for each MiB or so that arrived.
    _room: Vec<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Received {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a body of at most `most` bytes. With `app`, all bodies that are in memory are bounded together.
pub(crate) async fn collect(app: Option<&App>, mut body: Body, most: usize) -> Result<Bytes, ApiError> {
    let mut bytes = BytesMut::new();
    let mut room = Vec::new();
    let mut reserved = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ApiError::invalid(format!("the body ended early: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len().saturating_add(data.len()) > most {
            return Err(too_large("body is", most));
        }
        if let Some(app) = app.filter(|_| bytes.len() + data.len() > reserved) {
            // As the buffer grows: twofold.
            let more = (bytes.len() + data.len() - reserved).max(reserved).min(most.saturating_sub(reserved));
            room.push(app.received(more)?);
            reserved += more;
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Bytes::from_owner(Received { bytes, _room: room }))
}

/// Unpacks gzip to at most `most` bytes.
pub(crate) fn inflate(bytes: &[u8], most: usize) -> Result<Vec<u8>, ApiError> {
    bounded(bufread::MultiGzDecoder::new(bytes), bytes.len(), most, "gzip")
}

/// Reads everything, which must not exceed `most` bytes.
fn bounded(from: impl Read, packed: usize, most: usize, format: &str) -> Result<Vec<u8>, ApiError> {
    let mut unpacked = Vec::with_capacity(packed.saturating_mul(4).min(most));
    let limit = (most as u64).saturating_add(1);
    let read = from.take(limit).read_to_end(&mut unpacked);
    read.map_err(|error| ApiError::invalid(format!("malformed {format} data: {error}")))?;
    if unpacked.len() > most {
        return Err(too_large("data unpack to", most));
    }
    Ok(unpacked)
}

fn too_large(what: &str, most: usize) -> ApiError {
    let message = format!("the {what} more than {most} bytes, the limit: send less in one request");
    ApiError::new(ErrorCode::TooLarge, message)
}
