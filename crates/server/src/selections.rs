//! Profiles of the store as a recording: read once for the answers that a page requests together, and dropped soon after.
//!
//! Elsewhere: how long they are kept (`recent`).

use std::sync::{Arc, PoisonError};

use plumb_documents::answers::LoadedRecording;
use plumb_formats::foreign;
use plumb_profile::Profile;
use prost::Message as _;

use crate::app::Context;
use crate::error::ApiError;
use crate::pyroscope::querier::StacktracesRequest;
use crate::query;
use lacks::lacks;
use recent::Key;

pub(crate) mod lacks;
pub(crate) mod recent;

/// The selected profiles as a recording.
pub(crate) fn loaded(
    context: &Context,
    request: &StacktracesRequest,
) -> Result<Arc<LoadedRecording>, ApiError> {
    let key = Key {
        tenant: context.tenant.clone(),
        kind: request.profile_type_id.clone(),
        selector: request.label_selector.clone(),
        range: (request.start, request.end),
    };
    let entry = context.selections.entry(&key);
    let mut known = entry.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(recording) = &*known {
        return Ok(recording.clone());
    }
    let recording = Arc::new(read(context, request)?);
    context.selections.weigh(&key, recording.profile.samples.len());
    context.selections.forget_later();
    *known = Some(recording.clone());
    Ok(recording)
}

fn read(context: &Context, request: &StacktracesRequest) -> Result<LoadedRecording, ApiError> {
    let bounded = query::thinned_profile(context, request)?;
    let (warnings, message) = (bounded.warnings(), bounded.message);
    let mut profile = match message.sample.is_empty() {
        true => Profile::default(),
        false => foreign::read(&message.encode_to_vec())?,
    };
    context.check()?;
    plumb_symbolize::make_readable(&mut profile);
    let meta = &mut profile.meta;
    meta.start_unix_ns = u64::try_from(request.start).unwrap_or(0).saturating_mul(1_000_000);
    meta.frequency_hz = None;
    meta.recorder = "several profiles of a store".into();
    // Warnings about the intermediate format are irrelevant.
    meta.warnings.clear();
    meta.warnings.extend(warnings);
    let name = match request.label_selector.trim() {
        "" | "{}" => "all services".to_owned(),
        selector => selector.to_owned(),
    };
    let lacks = lacks(&profile);
    Ok(LoadedRecording { name, profile: Arc::new(profile), lacks, calls: None })
}
