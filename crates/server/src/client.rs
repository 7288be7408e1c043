//! What a client of a server sends: a profile as `plumb push` does.

use prost::Message;

use crate::wire::push::{PushRequest, RawProfileSeries, RawSample};
use crate::wire::types::LabelPair;

/// The path of requests that [`push_request`] makes.
pub const PUSH_PATH: &str = "/push.v1.PusherService/Push";

/// The body of a request (`application/proto`) that stores a profile as pprof has it, gzipped or not.
pub fn push_request(labels: &[(String, String)], profile: Vec<u8>) -> Vec<u8> {
    let labels = labels.iter().map(|(name, value)| LabelPair { name: name.clone(), value: value.clone() });
    let samples = vec![RawSample { raw_profile: profile, id: String::new() }];
    let series = RawProfileSeries { labels: labels.collect(), samples };
    PushRequest { series: vec![series] }.encode_to_vec()
}
