//! Details of an error in gRPC: `google.rpc.Status` and `google.rpc.RetryInfo`, by which OpenTelemetry's senders know that they may send again.

use prost::Message;

/// An error with details.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Detail>,
}

/// A detail: `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Detail {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// Time after which a request may be sent again.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    delay: Option<Delay>,
}

/// A time: `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
}

impl Status {
    /// An error after which a request may be sent again in this number of seconds.
    pub fn retry(code: u8, message: &str, seconds: u64) -> Self {
        let delay = Some(Delay { seconds: i64::try_from(seconds).unwrap_or(i64::MAX) });
        let type_url = "type.googleapis.com/google.rpc.RetryInfo".to_owned();
        let details = vec![Detail { type_url, value: RetryInfo { delay }.encode_to_vec() }];
        Self { code: code.into(), message: message.to_owned(), details }
    }
}
