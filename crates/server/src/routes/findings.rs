//! `/api/v1/findings`: what stands out in the services of a range of time, what concerns the user's services first.

use super::api::{Answer, json, kind, number, range};
use super::verdict::threshold;
use crate::app::Context;
use crate::error::ApiError;
use crate::parameters::Parameters;
use crate::query::{self, FindingsRequest};

pub(super) fn findings(context: &Context, parameters: &Parameters) -> Result<Answer, ApiError> {
    let (start, end) = range(parameters, ["from", "until"])?;
    let label_selector = parameters.get("query").unwrap_or_default().to_owned();
    let services = match number(parameters, "services")? {
        Some(services) => usize::try_from(services).unwrap_or(0),
        None => FindingsRequest::SERVICES,
    };
    let mut request = FindingsRequest {
        profile_type: parameters.get("type").unwrap_or_default().to_owned(),
        label_selector,
        start,
        end,
        threshold: threshold(parameters)?,
        services,
    };
    let kept_from = context.options.watch.map(|watch| watch.kept_from);
    let kept =
        kept_from.and_then(|kept_from| context.kept_findings.answer(&context.tenant, &request, kept_from));
    if let Some(kept) = kept {
        return json(&*kept);
    }
    request.profile_type = kind(context, parameters, &request.label_selector, (start, end))?;
    json(&query::findings(context, &request)?)
}
