//! `/api/v1/verdict`: what is slow in the selected profiles, why, and what could be gained: the report of `plumb explain`.
//!
//! Invariant: no file is read that a profile names: whoever sends profiles would choose what the server reads.

use plumb_analyze::{Filter, explained_event};
use plumb_documents::explain::{self, NamedFiles};
use plumb_formats::foreign;
use prost::Message;

use super::api::{Answer, json, selected};
use super::export::nothing;
use crate::app::Context;
use crate::error::{ApiError, ErrorCode};
use crate::parameters::Parameters;
use crate::query::{self, BoundedProfile, FindingsRequest};

/// The threshold that is asked for.
pub(super) fn threshold(parameters: &Parameters) -> Result<f64, ApiError> {
    match parameters.get("threshold").filter(|text| !text.is_empty()) {
        None => Ok(FindingsRequest::THRESHOLD),
        Some(text) => text.parse().ok().filter(|share| (0.0..=100.0).contains(share)).ok_or_else(|| {
            ApiError::invalid(format!("threshold={text}: expected a percentage from 0 to 100"))
        }),
    }
}

pub(super) fn verdict(context: &Context, parameters: &Parameters) -> Result<Answer, ApiError> {
    let threshold = threshold(parameters)?;
    let request = selected(context, parameters, ["query", "from", "until"])?;
    let bounded = query::bounded_profile(context, &request)?;
    let (warnings, BoundedProfile { message, bounds, .. }) = (bounded.warnings(), bounded);
    if message.sample.is_empty() {
        return Err(nothing());
    }
    context.check()?;
    let mut profile = foreign::read(&message.encode_to_vec())?;
    context.check()?;
    plumb_symbolize::make_readable(&mut profile);
    profile.meta.warnings.extend(warnings);
    let Some(event) = explained_event(&profile) else {
        let message = "profiles of this type are not of processor time, which is what is explained; /api/v1/types lists the types that there are";
        return Err(ApiError::new(ErrorCode::NotFound, message));
    };
    let filter = Filter { event: Some(event), no_idle: true, ..Filter::default() };
    let mut document = explain::verdict(&profile, &filter, threshold, NamedFiles::Ignore);
    document.truncated = Some(bounds);
    json(&document)
}
