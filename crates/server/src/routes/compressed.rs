//! Answers that are compressed where the client takes it (`Accept-Encoding`, RFC 9110, section 12.5.3): zstd, otherwise gzip.
//!
//! Not here: bodies of requests (`connect`), and what gRPC compresses by itself.

use axum::http::{Response, header};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};

/// Answers that are shorter fit into a packet or two as they are.
const SHORTEST: u16 = 1024;

/// Kinds of content that would not get smaller, and gRPC's, whose messages have a compression of their own.
const AS_THEY_ARE: [&str; 4] = ["application/gzip", "application/zip", "application/grpc", "image/"];

/// Whether an answer of that kind may get smaller.
#[derive(Clone, Copy)]
pub(super) struct GetsSmaller;

impl Predicate for GetsSmaller {
    fn should_compress<B: axum::body::HttpBody>(&self, response: &Response<B>) -> bool {
        let kind = response.headers().get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default());
        let kind = kind.unwrap_or_default();
        SizeAbove::new(SHORTEST).should_compress(response)
            && !AS_THEY_ARE.iter().any(|one| kind.starts_with(one))
    }
}

/// What compresses answers. Fast rather than small: an answer is made for one client, once.
pub(super) fn layer() -> CompressionLayer<GetsSmaller> {
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(GetsSmaller)
}
