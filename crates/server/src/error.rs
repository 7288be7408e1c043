//! Errors for clients: a code of the Connect protocol and a sentence.

use std::fmt;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use plumb_formats::foreign::ForeignError;
use plumb_store::{SelectorError, StoreError};
use serde::Serialize;

/// The codes of the Connect protocol that plumb uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// The request is invalid, whatever the state of the server.
    InvalidArgument,
    /// No credentials, or unknown ones.
    Unauthenticated,
    /// The credentials don't allow it.
    PermissionDenied,
    /// The named item does not exist.
    NotFound,
    /// A limit is exceeded.
    ResourceExhausted,
    /// The body is larger than the limit.
    TooLarge,
    /// Not supported by plumb.
    Unimplemented,
    /// The server is temporarily unable to do it.
    Unavailable,
    /// The client no longer waits for the answer.
    Canceled,
    /// The time limit was exceeded.
    DeadlineExceeded,
    /// A bug in plumb.
    Internal,
}

impl ErrorCode {
    /// Name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "invalid_argument",
            Self::Unauthenticated => "unauthenticated",
            Self::PermissionDenied => "permission_denied",
            Self::NotFound => "not_found",
            Self::ResourceExhausted | Self::TooLarge => "resource_exhausted",
            Self::Unimplemented => "unimplemented",
            Self::Unavailable => "unavailable",
            Self::Canceled => "canceled",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::Internal => "internal",
        }
    }

    /// The status of the HTTP answer.
    pub fn status(self) -> StatusCode {
        match self {
            Self::InvalidArgument => StatusCode::BAD_REQUEST,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::PermissionDenied => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            // According to the protocol; the status has no registered name.
            Self::Canceled => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
            Self::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The number of the code in gRPC.
    pub fn grpc(self) -> u8 {
        match self {
            Self::Canceled => 1,
            Self::InvalidArgument => 3,
            Self::DeadlineExceeded => 4,
            Self::NotFound => 5,
            Self::PermissionDenied => 7,
            Self::ResourceExhausted | Self::TooLarge => 8,
            Self::Unimplemented => 12,
            Self::Internal => 13,
            Self::Unavailable => 14,
            Self::Unauthenticated => 16,
        }
    }
}

/// The reason why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The kind of failure.
    pub code: ErrorCode,
    /// Description of the failure, and what to do.
    pub message: String,
    /// Seconds after which the same request may succeed, if that is known.
    pub retry_after: Option<u64>,
}

impl ApiError {
    /// An error with a code.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after: None }
    }

    /// An invalid request.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.code.name(), self.message)
    }
}

impl std::error::Error for ApiError {}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::Tenant(_) | StoreError::Symbols(_) => ErrorCode::InvalidArgument,
            StoreError::TooLarge { .. } => ErrorCode::ResourceExhausted,
            StoreError::SharedTenant(_) => ErrorCode::Unimplemented,
            StoreError::Cancelled => ErrorCode::Canceled,
            StoreError::Full(_) | StoreError::Closed => ErrorCode::Unavailable,
            _ => ErrorCode::Internal,
        };
        Self::new(code, error.to_string())
    }
}

impl From<SelectorError> for ApiError {
    fn from(error: SelectorError) -> Self {
        Self::invalid(error.to_string())
    }
}

impl From<ForeignError> for ApiError {
    fn from(error: ForeignError) -> Self {
        Self::invalid(format!("malformed profile: {error}"))
    }
}

/// The body of an error in Connect's unary protocol.
#[derive(Serialize)]
struct ErrorBody<'e> {
    code: &'static str,
    message: &'e str,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if self.code == ErrorCode::Internal {
            tracing::error!(message = self.message, "request failed");
        }
        let body = ErrorBody { code: self.code.name(), message: &self.message };
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = (self.code.status(), body).into_response();
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == ErrorCode::Unauthenticated {
            // Makes a browser ask for a password, which is the token.
            let basic =
                HeaderValue::from_static("Basic realm=\"plumb: the password is a token\", charset=\"UTF-8\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, basic);
        }
        response
    }
}
