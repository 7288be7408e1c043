//! The OpenTelemetry process context (OTEP 4719): a mapping in which an SDK publishes the resource of its process, the service's name among others.
//!
//! The mapping is of another process: everything in it may be wrong, and may change while it is read.

use plumb_formats::otlp::message::{AnyValue, OneValue, Resource};
use prost::Message;

use super::relabel::Attributes;

/// Names of the mapping: of shared memory or of a private mapping that the kernel gave a name, or of a file in memory.
const NAMES: [&str; 3] = ["[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]", "/memfd:OTEL_CTX"];
const SIGNATURE: &[u8; 8] = b"OTEL_CTX";
const VERSION: u32 = 2;
/// Bytes of the header: signature, version, size of the payload, time of its publication, and its address.
const HEADER: usize = 32;
/// Most bytes of a payload that are read.
const MOST: usize = 64 << 10;
/// Attempts to read a context that its process changes.
const ATTEMPTS: usize = 3;

/// A process's context.
#[derive(Clone, PartialEq, Message)]
struct ProcessContext {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
}

/// The text attributes in a process's context; `None` if it has none, or none that can be read.
pub(crate) fn read_context(pid: u32) -> Option<Attributes> {
    let text = plumb_process::mappings(pid)?;
    let at = plumb_process::parse_maps(&text).find(|line| is_context(line.path)).map(|line| line.start)?;
    (0..ATTEMPTS)
        .find_map(|_| published(at, |at, bytes| plumb_process::read_memory(pid, at, bytes) == bytes.len()))
}

/// Whether a mapping's name is a context's; text may follow, such as that its file is deleted.
fn is_context(path: &[u8]) -> bool {
    NAMES.iter().any(|name| path.starts_with(name.as_bytes()))
}

/// The attributes of the context at an address. `None` if it is being written, or no context.
fn published(at: u64, read: impl Fn(u64, &mut [u8]) -> bool) -> Option<Attributes> {
    let header = || {
        let mut bytes = [0; HEADER];
        read(at, &mut bytes).then_some(bytes)
    };
    let first = header()?;
    let word = |place: usize| Some(u64::from_le_bytes(first.get(place..place + 8)?.try_into().ok()?));
    let half = |place: usize| Some(u32::from_le_bytes(first.get(place..place + 4)?.try_into().ok()?));
    if first[..8] != *SIGNATURE || half(8)? != VERSION || word(16)? == 0 {
        return None;
    }
    let length = usize::try_from(half(12)?).ok().filter(|&length| length <= MOST)?;
    let mut payload = vec![0; length];
    // The time changes with each publication.
    if !read(word(24)?, &mut payload) || header()? != first {
        return None;
    }
    let resource = ProcessContext::decode(&*payload).ok()?.resource?;
    let text = |value: AnyValue| match value.value {
        Some(OneValue::Text(text)) => Some(text),
        _ => None,
    };
    let attributes = resource.attributes.into_iter();
    Some(attributes.filter_map(|one| Some((one.key, one.value.and_then(text)?))).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use plumb_formats::otlp::message::KeyValue;

    use super::*;

    /// Memory with a context at 0 and its payload behind it.
    fn memory(time: u64, length: Option<u32>) -> Vec<u8> {
        let attributes =
            vec![KeyValue::of_text("service.name", "shop"), KeyValue::of_text("service.version", "1.1")];
        let payload = ProcessContext { resource: Some(Resource { attributes }) }.encode_to_vec();
        let length = length.unwrap_or(u32::try_from(payload.len()).unwrap());
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(time.to_le_bytes());
        bytes.extend((HEADER as u64).to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    fn of(memory: &[u8]) -> Option<Attributes> {
        published(0, |at, bytes| {
            let from = usize::try_from(at).unwrap_or(usize::MAX);
            let found = from.checked_add(bytes.len()).and_then(|until| memory.get(from..until));
            found.map(|found| bytes.copy_from_slice(found)).is_some()
        })
    }

    #[test]
    fn a_context_names_the_service() {
        let read = of(&memory(7, None)).unwrap();
        assert_eq!((&*read["service.name"], &*read["service.version"]), ("shop", "1.1"));
    }

    #[test]
    fn a_context_that_is_none_or_unfinished_is_not_read() {
        let whole = memory(7, None);
        for length in 0..whole.len() {
            assert_eq!(of(&whole[..length]), None, "cut to {length} bytes");
        }
        assert_eq!(of(&memory(0, None)), None, "it is being written");
        assert_eq!(of(&memory(7, Some(u32::MAX))), None);
        for place in 0..12 {
            let mut wrong = whole.clone();
            wrong[place] ^= 0xff;
            assert_eq!(of(&wrong), None);
        }
        for place in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[place] ^= 0xff;
            of(&wrong);
        }
    }
}
