//! Questions answered from the store, as `querier.v1` means them. A file for each kind of answer.
//!
//! Not here: messages (`pyroscope`), rows of flame graphs (`flame`), the protocol (`connect`).

mod bounded;
mod bursts;
mod call_site;
mod duration;
mod findings;
mod findings_request;
mod functions;
mod go_pgo;
mod heatmap;
mod labels;
mod lasting;
mod locks;
mod merge;
mod place;
mod profile;
mod rhythms;
mod rows;
mod selection;
mod series;
mod versions;
mod windows;

pub(crate) use bounded::{BoundedProfile, bounded_profile, thinned_profile};
pub(crate) use findings::findings;
pub(crate) use findings_request::FindingsRequest;
pub(crate) use functions::{functions, neighbours};
pub(crate) use heatmap::heatmap;
pub(crate) use labels::{analyze, label_names, label_values, profile_types, series_labels, stats};
pub(crate) use merge::{call_tree, diff, span_profile, stacktraces};
pub(crate) use profile::{counted_profile, merge_profile};
pub(crate) use selection::profile_type;
pub(crate) use series::{select_series, series_of};
