//! `/api/v1/findings`: what stands out in the services of a range of time, what concerns the user's services first.

use super::api::{Answer, json, kind, number, range};
use super::verdict::threshold;
use crate::app::Context;
use crate::error::ApiError;
use crate::parameters::Parameters;
use crate::query::{self, FindingsRequest};

/// Services that are looked at where no number is asked for.
const SERVICES: i64 = 20;

pub(super) fn findings(context: &Context, parameters: &Parameters) -> Result<Answer, ApiError> {
    let (start, end) = range(parameters, ["from", "until"])?;
    let label_selector = parameters.get("query").unwrap_or_default().to_owned();
    let services = number(parameters, "services")?.unwrap_or(SERVICES);
    let request = FindingsRequest {
        profile_type: kind(context, parameters, &label_selector, (start, end))?,
        label_selector,
        start,
        end,
        threshold: threshold(parameters)?,
        services: usize::try_from(services).unwrap_or(0),
    };
    json(&query::findings(context, &request)?)
}
