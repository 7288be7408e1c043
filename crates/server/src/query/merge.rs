//! Merged flame graphs: of one selection, or of two side by side.

use plumb_store::CallTree;

use super::call_site;
use super::profile::{MergedProfile, merge_profile};
use super::selection::{Range, nodes, of_type, select};
use crate::app::Context;
use crate::error::{ApiError, ErrorCode};
use crate::flame;
use crate::pyroscope::querier::{
    DiffRequest, DiffResponse, MergeProfileRequest, PprofAnswer, SpanProfileRequest, StacktracesRequest,
    StacktracesResponse,
};

/// Formats that `SelectMergeStacktraces` knows and plumb writes: 0 is a flame graph too.
const FLAMEGRAPH: [i32; 2] = [0, 1];
const TREE: i32 = 2;
const PPROF: i32 = 4;

/// Refuses what selects by ids of profiles, spans and traces, which the store doesn't keep.
pub(crate) fn without_ids(kinds: &[(&str, &[String])]) -> Result<(), ApiError> {
    match kinds.iter().find(|(_, ids)| !ids.is_empty()) {
        None => Ok(()),
        Some((name, _)) => Err(ApiError::new(
            ErrorCode::Unimplemented,
            format!(
                "{name} is not supported: plumb keeps no ids of profiles, spans and traces; select by labels"
            ),
        )),
    }
}

/// The flame graph of a selection, or its profile in pprof's format.
pub(crate) fn stacktraces(
    context: &Context,
    request: StacktracesRequest,
) -> Result<StacktracesResponse, ApiError> {
    if request.format == PPROF {
        without_ids(&[("span_selector", &request.span_selector)])?;
        let MergedProfile(profile) = merge_profile(context, request.into())?;
        return Ok(StacktracesResponse {
            flamegraph: None,
            tree: Vec::new(),
            pprof: Some(PprofAnswer { profile: Some(profile) }),
        });
    }
    if request.format != TREE && !FLAMEGRAPH.contains(&request.format) {
        let message =
            "only PROFILE_FORMAT_FLAMEGRAPH, PROFILE_FORMAT_TREE and PROFILE_FORMAT_PPROF are supported";
        return Err(ApiError::new(ErrorCode::Unimplemented, message));
    }
    let most = nodes(request.max_nodes, &context.options.query)?;
    let tree = largest_calls(context, &request, most)?;
    context.check()?;
    Ok(match request.format {
        TREE => StacktracesResponse { tree: flame::call_tree(&tree, most), ..StacktracesResponse::default() },
        _ => StacktracesResponse {
            flamegraph: Some(flame::graph(&tree, most)),
            ..StacktracesResponse::default()
        },
    })
}

impl From<StacktracesRequest> for MergeProfileRequest {
    fn from(request: StacktracesRequest) -> Self {
        Self {
            profile_type_id: request.profile_type_id,
            label_selector: request.label_selector,
            start: request.start,
            end: request.end,
            max_nodes: request.max_nodes,
            stack_trace_selector: request.stack_trace_selector,
            profile_id_selector: request.profile_id_selector,
            trace_id_selector: request.trace_id_selector,
        }
    }
}

/// The calls of a selection.
pub(crate) fn call_tree(context: &Context, request: &StacktracesRequest) -> Result<CallTree<1>, ApiError> {
    largest_calls(context, request, usize::MAX)
}

/// The calls of a selection. Only the `most` largest are needed.
fn largest_calls(
    context: &Context,
    request: &StacktracesRequest,
    most: usize,
) -> Result<CallTree<1>, ApiError> {
    without_ids(&[
        ("profile_id_selector", &request.profile_id_selector),
        ("trace_id_selector", &request.trace_id_selector),
        ("span_selector", &request.span_selector),
    ])?;
    let functions = call_site::functions(request.stack_trace_selector.clone())?;
    let selector = of_type(&request.profile_type_id, &request.label_selector)?;
    let range = Range::checked(request.start, request.end, &context.options.query)?;
    // The calls below a function may be small ones.
    let most = if functions.is_empty() { most } else { usize::MAX };
    let tree = select(context, selector, range)?.largest_calls(most)?;
    Ok(call_site::cut(tree, &functions))
}

/// The flame graph of spans: without a selection of spans the same as of stacks.
pub(crate) fn span_profile(
    context: &Context,
    request: SpanProfileRequest,
) -> Result<StacktracesResponse, ApiError> {
    let request = StacktracesRequest {
        profile_type_id: request.profile_type_id,
        label_selector: request.label_selector,
        start: request.start,
        end: request.end,
        max_nodes: request.max_nodes,
        format: request.format,
        span_selector: request.span_selector,
        ..StacktracesRequest::default()
    };
    stacktraces(context, request)
}

/// Two selections side by side.
pub(crate) fn diff(context: &Context, request: DiffRequest) -> Result<DiffResponse, ApiError> {
    let (left, right) = (request.left.unwrap_or_default(), request.right.unwrap_or_default());
    let limits = &context.options.query;
    let most = nodes(left.max_nodes.max(right.max_nodes), limits)?;
    let mut sides = Vec::with_capacity(2);
    for side in [left, right] {
        without_ids(&[
            ("profile_id_selector", &side.profile_id_selector),
            ("trace_id_selector", &side.trace_id_selector),
            ("span_selector", &side.span_selector),
        ])?;
        if !call_site::functions(side.stack_trace_selector)?.is_empty() {
            let message = "call_site is not supported in a diff; select by labels";
            return Err(ApiError::new(ErrorCode::Unimplemented, message));
        }
        let selector = of_type(&side.profile_type_id, &side.label_selector)?;
        let range = Range::checked(side.start, side.end, limits)?;
        sides.push(select(context, selector, range)?);
    }
    let tree = plumb_store::diff(&sides[0], &sides[1], most)?;
    context.check()?;
    Ok(DiffResponse { flamegraph: Some(flame::diff(&tree, most)) })
}
