//! Compresses answers if the client accepts it (`Accept-Encoding`, RFC 9110, section 12.5.3): zstd, otherwise gzip.
//!
//! Elsewhere: bodies of requests (`connect`), and gRPC's own compression.

use axum::http::{Response, header};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};

/// Shorter answers fit into a packet or two uncompressed.
const SHORTEST: u16 = 1024;

/// Content types that would not get smaller, and gRPC's, whose messages have their own compression.
const AS_THEY_ARE: [&str; 4] = ["application/gzip", "application/zip", "application/grpc", "image/"];

/// Whether an answer of that type may get smaller.
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

/// The compression layer. Fast rather than small: an answer is sent to one client, once.
pub(super) fn layer() -> CompressionLayer<GetsSmaller> {
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(GetsSmaller)
}
