//! Recordings in the form that the page's views take: the profile, missing data, and remedies.
//!
//! Elsewhere: the answers on them and single-file pages (`plumb_documents`), serving (`showing`).

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use plumb_documents::answers::{Lack, LoadedRecording};
use plumb_profile::Profile;
use serde_json::Value;

use crate::args::SymfsArgs;
use plumb_stack_quality::{Completeness, nameless};

/// Loads a file for display.
///
/// # Errors
/// The file can't be read.
pub fn load(path: &Path, symfs: &SymfsArgs) -> Result<LoadedRecording> {
    let name = path.display().to_string();
    if let Some(calls) = counted_calls(path) {
        return Ok(of_calls(&name, calls));
    }
    let profile = crate::load::load(path, symfs)?;
    Ok(recording(&name, Arc::new(profile)))
}

/// Loads a file's bytes; `name` is used in messages.
///
/// # Errors
/// The bytes are neither a recording nor a profile.
#[cfg(feature = "server")]
pub fn load_bytes(name: &str, bytes: Vec<u8>, symfs: &SymfsArgs) -> Result<LoadedRecording> {
    if let Some(calls) = calls_in(&bytes) {
        return Ok(of_calls(name, calls));
    }
    let profile = crate::load::load_bytes(name, bytes, symfs)?;
    Ok(recording(name, Arc::new(profile)))
}

/// Largest file that is read as a document of counted system calls.
const LARGEST: u64 = 256 << 20;

/// The document, if the file is the output of `plumb kernel --calls --json`.
fn counted_calls(path: &Path) -> Option<Value> {
    let mut file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    let mut first = [0; 1];
    if !metadata.is_file() || metadata.len() > LARGEST || file.read(&mut first).ok()? == 0 || first != *b"{" {
        return None;
    }
    let mut text = b"{".to_vec();
    file.read_to_end(&mut text).ok()?;
    calls_in(&text)
}

/// Parses the text if it is a document of counted system calls.
fn calls_in(text: &[u8]) -> Option<Value> {
    // Checked first, so that large documents of other tools are not parsed in vain.
    const SIGN: &[u8] = b"\"kernel_named\"";
    if text.first() != Some(&b'{') {
        return None;
    }
    text.windows(SIGN.len()).find(|&window| window == SIGN)?;
    let document: Value = serde_json::from_slice(text).ok()?;
    document["calls"].is_array().then_some(document)
}

/// Counted system calls as a recording without samples.
fn of_calls(name: &str, calls: Value) -> LoadedRecording {
    let mut profile = Profile::default();
    profile.meta.recorder = calls["recorder"].as_str().unwrap_or_default().to_owned();
    profile.meta.duration_ns = calls["duration_ns"].as_u64().unwrap_or_default();
    let words = calls["command"].as_array().into_iter().flatten();
    profile.meta.command = words.filter_map(|word| Some(word.as_str()?.to_owned())).collect();
    LoadedRecording { calls: Some(Arc::new(calls)), ..recording(name, Arc::new(profile)) }
}

/// A recording made from a profile in memory.
pub fn recording(name: &str, profile: Arc<Profile>) -> LoadedRecording {
    let lacks = lacks(&profile);
    LoadedRecording { name: name.to_owned(), profile, lacks, calls: None }
}

/// Missing data of a recording, with remedies.
fn lacks(profile: &Profile) -> Vec<Lack> {
    let cut = Completeness::of(profile).causes;
    let cut = cut.iter().map(|cause| Lack {
        what: format!("truncated stacks: {}", cause.text()),
        samples: cause.samples,
        remedy: cause.remedy().to_owned(),
    });
    let nameless = nameless(profile).0.into_iter().map(|place| Lack {
        what: format!("no function names: {}", place.place),
        samples: place.samples,
        remedy: place.remedy(profile),
    });
    cut.chain(nameless).collect()
}
