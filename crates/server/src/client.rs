//! Definitions shared with clients: the request of `plumb push`, and the default profile type.

use plumb_store::ProfileType;
use prost::Message;

use crate::pyroscope::push::{PushRequest, RawProfileSeries, RawSample};
use crate::pyroscope::types::LabelPair;

/// The path of requests that [`push_request`] makes.
pub const PUSH_PATH: &str = "/push.v1.PusherService/Push";

/// Path for uploading files with symbols: `PUT` this path, `/`, and the file's build ID.
pub const SYMBOLS_PATH: &str = "/api/v1/symbols";

/// The body of a request (`application/proto`) that stores a pprof profile, gzipped or not.
pub fn push_request(labels: &[(String, String)], profile: Vec<u8>) -> Vec<u8> {
    let labels = labels.iter().map(|(name, value)| LabelPair { name: name.clone(), value: value.clone() });
    let samples = vec![RawSample { raw_profile: profile, id: String::new() }];
    let series = RawProfileSeries { labels: labels.collect(), samples };
    PushRequest { series: vec![series] }.encode_to_vec()
}

/// The profile type of CPU time.
const CPU: &str = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";

/// The default profile type: CPU time, or the only existing type beside the number of its samples.
///
/// # Errors
/// There are several other types: a sentence that lists them.
pub fn default_type(types: &[String]) -> Result<&str, String> {
    let counts = |kind: &String| Some(ProfileType::parse(kind)?.sample_count()?.to_string());
    let counts: Vec<String> = types.iter().filter_map(counts).collect();
    let values: Vec<&str> = types.iter().filter(|kind| !counts.contains(kind)).map(|kind| &**kind).collect();
    match values[..] {
        [] => Ok(CPU),
        [only] => Ok(only),
        _ if values.contains(&CPU) => Ok(CPU),
        _ => Err(format!("profiles of several types match; choose one: {}", types.join(", "))),
    }
}
