//! OpenTelemetry's profiles, over gRPC and over HTTP.
//!
//! gRPC of one request and one answer is five bytes before a message and a status behind it, so it is written by hand: tonic would bring a second
//! server beside axum's.

use std::fmt::Display;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use plumb_formats::otlp::{HTTP_PATH, message::ProfilesData};
use plumb_store::{Batch, RequestKey, Tenant};
use prost::Message;

use crate::app::App;
use crate::connect::{self, Codec};
use crate::error::{ApiError, ErrorCode};
use crate::ingest::{OTLP, add_otlp, check_json, check_message};
use crate::pyroscope::status::Status;

/// The method of the service, as its path in gRPC.
const EXPORT: &str = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

pub(super) fn routes() -> Router<App> {
    Router::new().route(EXPORT, post(grpc)).route(HTTP_PATH, post(http))
}

async fn store<B>(app: &App, tenant: Tenant, codec: Codec, body: B) -> Result<(), ApiError>
where
    B: Fn(usize) -> Result<Bytes, ApiError> + Send + Sync + 'static,
{
    let sender = tenant.clone();
    app.ingest(tenant, move |limits| {
        let bytes = body(limits.unpacked)?;
        match codec {
            Codec::Proto => check_message(&bytes, &OTLP, limits.memory.decoded)?,
            Codec::Json => check_json(&bytes, limits.memory.decoded)?,
        }
        let malformed = |error: &dyn Display| ApiError::invalid(format!("malformed profiles: {error}"));
        let data = match codec {
            Codec::Proto => ProfilesData::decode(&*bytes).map_err(|error| malformed(&error))?,
            Codec::Json => serde_json::from_slice(&bytes).map_err(|error| malformed(&error))?,
        };
        let mut batch = Batch::default();
        add_otlp(&mut batch, &data, limits)?;
        // Clients send again what they got no answer for. Where profiles have their times in them the same bytes are the same request.
        batch.request = have_times(&data).then(|| RequestKey::new(&sender, &bytes));
        Ok(batch)
    })
    .await
}

fn have_times(data: &ProfilesData) -> bool {
    let scopes = data.resource_profiles.iter().flat_map(|one| &one.scope_profiles);
    scopes.flat_map(|one| &one.profiles).all(|profile| profile.time_unix_nano != 0)
}

async fn http(State(app): State<App>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(codec) = Codec::of(&parts.headers) else {
        let message = "unknown content type; send application/x-protobuf or application/json";
        return ApiError::new(ErrorCode::Unimplemented, message).into_response();
    };
    let stored = async {
        let tenant = app.tenant(&parts.headers)?;
        let body = connect::read_body(&app, &tenant, &parts.headers, body).await?;
        store(&app, tenant, codec, move |most| body.unpacked(most)).await
    };
    // An answer without anything in it: all was stored.
    let (kind, empty) = match codec {
        Codec::Proto => ("application/x-protobuf", ""),
        Codec::Json => ("application/json", "{}"),
    };
    match stored.await {
        Ok(()) => ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], empty).into_response(),
        Err(error) => error.into_response(),
    }
}

async fn grpc(State(app): State<App>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let stored = async {
        let tenant = app.tenant(&parts.headers)?;
        let body = connect::read_body(&app, &tenant, &parts.headers, body).await?;
        let encoding =
            parts.headers.get("grpc-encoding").and_then(|one| one.to_str().ok()).map(str::to_owned);
        let message = move |most| unframed(body.unpacked(most)?, encoding.as_deref(), most);
        store(&app, tenant, Codec::Proto, message).await
    };
    let mut response = match stored.await {
        Ok(()) => {
            let mut trailers = HeaderMap::new();
            trailers.insert(STATUS, HeaderValue::from_static("0"));
            let empty_message = Full::new(Bytes::from_static(&[0; 5]));
            Response::new(Body::new(empty_message.with_trailers(async { Some(Ok(trailers)) })))
        }
        Err(error) => {
            let mut response = Response::new(Body::empty());
            let status = HeaderValue::from(u16::from(error.code.grpc()));
            response.headers_mut().insert(STATUS, status);
            if let Ok(message) = HeaderValue::from_str(&percent_encoded(&error.message)) {
                response.headers_mut().insert(MESSAGE, message);
            }
            if let Some(details) = details(&error) {
                response.headers_mut().insert(DETAILS, details);
            }
            response
        }
    };
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

/// The time after which a client may send again, as OpenTelemetry's senders look for it: without it they drop what was refused by a limit.
fn details(error: &ApiError) -> Option<HeaderValue> {
    let status = Status::retry(error.code.grpc(), &error.message, error.retry_after?);
    HeaderValue::from_str(&STANDARD_NO_PAD.encode(status.encode_to_vec())).ok()
}

/// The one message of a request.
fn unframed(mut framed: Bytes, encoding: Option<&str>, most: usize) -> Result<Bytes, ApiError> {
    let wrong = |why: &str| ApiError::invalid(format!("malformed gRPC message: {why}"));
    if framed.len() < 5 {
        return Err(wrong("it ends early"));
    }
    let head = framed.split_to(5);
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    if framed.len() != length as usize {
        return Err(wrong("its length is not what it says"));
    }
    match (head[0], encoding) {
        (0, _) => Ok(framed),
        (_, Some(encoding)) if encoding != "identity" => connect::unpack(encoding, framed, most),
        _ => Err(wrong("it is compressed, and grpc-encoding does not say how")),
    }
}

/// A text as gRPC has it in a header.
fn percent_encoded(text: &str) -> String {
    let encoded = text.bytes().map(|byte| match byte {
        b' '..=b'~' if byte != b'%' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    });
    encoded.collect()
}
