//! Counts of profiles by size over time: twenty ranges of values, the same for all groups.

use std::collections::BTreeMap;

use plumb_store::Labels;

use super::labels::pairs;
use super::selection::{Range, of_type, select};
use super::series::{GroupedProfile, grouped, limit, step_millis, step_of};
use crate::app::Context;
use crate::error::{ApiError, ErrorCode};
use crate::pyroscope::series::{HeatmapSeries, HeatmapSlot, SelectHeatmapRequest, SelectHeatmapResponse};

/// Number of value ranges.
const RANGES: usize = 20;

/// The number of [`SelectHeatmapRequest::query_type`] for spans.
const SPANS: i32 = 2;

/// Counts of profiles by step and range of values.
pub(crate) fn heatmap(
    context: &Context,
    request: SelectHeatmapRequest,
) -> Result<SelectHeatmapResponse, ApiError> {
    if request.query_type == SPANS {
        let message = "heatmaps of spans are not supported: plumb keeps no ids of spans";
        return Err(ApiError::new(ErrorCode::Unimplemented, message));
    }
    let selector = of_type(&request.profile_type_id, &request.label_selector)?;
    let range = Range::checked(request.start, request.end, &context.options.query)?;
    let step = step_millis(request.step)?;
    let limit = limit(request.limit)?;
    let wider = Range { start: range.start.saturating_sub(step), ..range };
    let profiles = grouped(&select(context, selector, wider)?, &request.group_by)?;
    let Some(values) = Values::of(&profiles) else { return Ok(SelectHeatmapResponse::default()) };
    let mut groups: BTreeMap<Labels, BTreeMap<i64, [i32; RANGES]>> = BTreeMap::new();
    for profile in profiles {
        let time = step_of(profile.time, range.start, step).max(range.start);
        let counts = groups.entry(profile.labels).or_default().entry(time).or_default();
        let count = &mut counts[values.range_of(profile.value)];
        *count = count.saturating_add(1);
    }
    let y_min: Vec<f64> = values.lows.iter().map(|&low| low as f64).collect();
    let slot = |(timestamp, counts): (i64, [i32; RANGES])| HeatmapSlot {
        timestamp,
        y_min: y_min.clone(),
        counts: counts.to_vec(),
    };
    let series = groups.into_iter().map(|(labels, slots)| HeatmapSeries {
        labels: pairs(&labels),
        slots: slots.into_iter().map(slot).collect(),
    });
    let mut series: Vec<HeatmapSeries> = series.collect();
    if let Some(limit) = limit {
        series.sort_by_key(|one| {
            let counts = one.slots.iter().flat_map(|slot| &slot.counts);
            std::cmp::Reverse(counts.map(|&count| i64::from(count)).sum::<i64>())
        });
        series.truncate(limit);
    }
    Ok(SelectHeatmapResponse { series })
}

/// Lower bounds of the value ranges.
struct Values {
    lows: [i64; RANGES],
}

impl Values {
    fn of(profiles: &[GroupedProfile]) -> Option<Self> {
        let values = || profiles.iter().map(|profile| profile.value);
        let (least, most) = (values().min()?, values().max()?);
        let width = most.saturating_sub(least).max(1) as f64 / RANGES as f64;
        let low = |range: usize| least.saturating_add((range as f64 * width) as i64);
        Some(Self { lows: std::array::from_fn(low) })
    }

    fn range_of(&self, value: i64) -> usize {
        self.lows.partition_point(|&low| low <= value).saturating_sub(1)
    }
}
