//! Checks the time of a profile against the limits: with a wrong clock it would be stored where nobody looks for it.

use plumb_store::{Labels, Millis};

use crate::error::ApiError;
use crate::moment;
use crate::options::IngestLimits;

/// Checks a profile's time in nanoseconds since 1970; 0 means none, and gives `now`.
pub(super) fn checked(
    nanos: u64,
    now: u128,
    labels: &Labels,
    limits: &IngestLimits,
) -> Result<Millis, ApiError> {
    if nanos == 0 {
        return Ok(Millis::of_nanos(u64::try_from(now).unwrap_or(u64::MAX)));
    }
    let time = u128::from(nanos);
    let is_late = limits.newest.is_some_and(|most| time > now.saturating_add(most.as_nanos()));
    let is_early = limits.oldest.is_some_and(|most| time < now.saturating_sub(most.as_nanos()));
    if is_late || is_early {
        let (seconds, now) = (nanos / 1_000_000_000, now / 1_000_000_000);
        let side = if is_late { "in the future" } else { "too old" };
        return Err(ApiError::invalid(format!(
            "the profile of {labels} is {side}: its time is {seconds} s since 1970, the server's is {now}; check both clocks"
        )));
    }
    Ok(Millis::of_nanos(nanos))
}

/// As [`checked`], for a request's time in milliseconds.
pub(crate) fn begin_time(millis: i64, labels: &Labels, limits: &IngestLimits) -> Result<Millis, ApiError> {
    let nanos = u64::try_from(millis).ok().and_then(|millis| millis.checked_mul(1_000_000));
    let nanos = nanos.ok_or_else(|| {
        ApiError::invalid(format!(
            "the time of the profile of {labels} is impossible: {millis} ms since 1970"
        ))
    })?;
    let now = u128::from(moment::now().unsigned_abs()) * 1_000_000;
    checked(nanos, now, labels, limits)
}
