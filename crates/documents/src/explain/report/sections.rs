//! The full report, section by section.

mod end;
mod figures;
mod hot;
mod time;
mod why;

pub(super) use figures::cell;
pub(super) use time::tells_kernel;

use plumb_analyze::Explanation;

use super::{ReportContext, title};
use crate::explain::HotFunctions;
use crate::sections::SectionedReport;

/// Returns the report with all sections.
pub fn document(
    report: &Explanation<'_>,
    code: &HotFunctions,
    context: &ReportContext<'_>,
) -> SectionedReport {
    SectionedReport {
        title: title::of(report, context.file),
        summary: end::summary(report),
        sections: vec![
            time::pace(report),
            time::split(report, context),
            hot::functions(report),
            hot::lines(report, code),
            hot::callers(report),
            why::waits(report),
            why::causes(report, context),
            end::quality(report),
            end::verdict(report),
            end::again(context.commands.again),
        ],
    }
}
