//! Connect's unary protocol: one message in a POST, one in the answer, both as protocol buffers or JSON.
//!
//! <https://connectrpc.com/docs/protocol>. Written by hand, as only this part of the protocol is needed, and `connectrpc` (0.9) requires its own
//! message types and a code generator.

use std::io::Read;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use http_body_util::BodyExt;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::app::{App, Context};
use crate::error::{ApiError, ErrorCode};
use crate::options::BodyLimits;

/// Largest zstd window, as a power of 2: a decoder keeps as much in memory.
const WINDOW_LOG: u32 = 24;

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
        let bytes = read_body(&app, &parts.headers, body).await?;
        let question: Q = codec.decode(&bytes)?;
        app.query(tenant, move |context| codec.encode(&answer(context, question)?)).await
    };
    answered.await.map_or_else(IntoResponse::into_response, |body| codec.response(body))
}

/// Reads and unpacks the body of a request.
pub(crate) async fn read_body(app: &App, headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
    let limits = &app.options.ingest;
    let limits = BodyLimits { sent: limits.body, unpacked: limits.unpacked, time: limits.body_time };
    read_body_within(app, headers, body, &limits).await
}

/// As [`read_body`], with other limits.
pub(crate) async fn read_body_within(
    app: &App,
    headers: &HeaderMap,
    body: Body,
    limits: &BodyLimits,
) -> Result<Bytes, ApiError> {
    let read = timeout(limits.time, collect(body, limits.sent)).await;
    let bytes = read.map_err(|_| {
        let seconds = limits.time.as_secs();
        ApiError::new(ErrorCode::DeadlineExceeded, format!("the body did not arrive within {seconds} s"))
    })??;
    app.metrics.received.inc_by(bytes.len() as u64);
    let encoding =
        headers.get(header::CONTENT_ENCODING).map_or("identity", |one| one.to_str().unwrap_or("?"));
    unpack(encoding.trim(), bytes, limits.unpacked)
}

/// Unpacks a body to at most `most` bytes.
pub(crate) fn unpack(encoding: &str, bytes: Bytes, most: usize) -> Result<Bytes, ApiError> {
    match encoding {
        "" | "identity" => Ok(bytes),
        "gzip" => Ok(inflate(&bytes, most)?.into()),
        "zstd" => {
            let malformed = |error| ApiError::invalid(format!("malformed zstd data: {error}"));
            let mut decoder = zstd::stream::read::Decoder::with_buffer(&*bytes).map_err(malformed)?;
            decoder.window_log_max(WINDOW_LOG).map_err(malformed)?;
            bounded(decoder, bytes.len(), most, "zstd").map(Bytes::from)
        }
        other => {
            let message =
                format!("unknown compression {other:?}: supported encodings are gzip, zstd, identity");
            Err(ApiError::new(ErrorCode::Unimplemented, message))
        }
    }
}

/// Reads a body of at most `most` bytes.
pub(crate) async fn collect(mut body: Body, most: usize) -> Result<Bytes, ApiError> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ApiError::invalid(format!("the body ended early: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len().saturating_add(data.len()) > most {
            let message = format!("the body is larger than {most} bytes, which is the limit");
            return Err(ApiError::new(ErrorCode::TooLarge, message));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

/// Unpacks gzip to at most `most` bytes.
pub(crate) fn inflate(bytes: &[u8], most: usize) -> Result<Vec<u8>, ApiError> {
    bounded(MultiGzDecoder::new(bytes), bytes.len(), most, "gzip")
}

/// Reads everything, which must not exceed `most` bytes.
fn bounded(from: impl Read, packed: usize, most: usize, format: &str) -> Result<Vec<u8>, ApiError> {
    let mut unpacked = Vec::with_capacity(packed.saturating_mul(4).min(most));
    let limit = (most as u64).saturating_add(1);
    let read = from.take(limit).read_to_end(&mut unpacked);
    read.map_err(|error| ApiError::invalid(format!("malformed {format} data: {error}")))?;
    if unpacked.len() > most {
        let message = format!("the data unpack to more than {most} bytes, which is the limit");
        return Err(ApiError::new(ErrorCode::TooLarge, message));
    }
    Ok(unpacked)
}
