//! The full report, section by section.

mod end;
mod figures;
mod hot;
mod time;
mod why;

pub(super) use figures::cell;
pub(super) use time::tells_kernel;

use plumb_analyze::Explanation;

use super::{Args, again, title};
use crate::render::document::Document;
use plumb_documents::explain::HotFunctions;

/// The whole report as a document.
pub(super) fn document(report: &Explanation<'_>, code: &HotFunctions, args: &Args) -> Document {
    let profile = report.view.profile();
    let title = title::of(report, (!args.records()).then_some(&*args.file));
    let again = again::commands(profile, args.records());
    Document {
        title,
        summary: end::summary(report),
        sections: vec![
            time::pace(report),
            time::split(report, args),
            hot::functions(report),
            hot::lines(report, code),
            hot::callers(report),
            why::waits(report),
            why::causes(report, args),
            end::quality(report),
            end::verdict(report),
            end::again(again),
        ],
    }
}
