//! The text above and below the listing.

use plumb_analyze::{Doubt, Precision, is_clock};
use plumb_profile::InstructionSet;

use super::{FunctionListing, gaps};
use crate::label;

impl FunctionListing<'_, '_> {
    /// Returns the subject of the listing and the meaning of its columns, one per line.
    pub fn facts(&self) -> Vec<String> {
        let (function, annotated) = (self.function, self.annotated);
        let annotation = &annotated.annotation;
        let profile = self.view.profile();
        let event = self.filter.event.map_or("", |event| profile.strings.get(profile.events[event].name));
        let mut lines = vec![
            format!("Function: {} in {}", function.name, function.path),
            format!(
                "Itself:   {} of all, {}{}",
                Precision::of(self.view).percent(annotation.own.percent_of(annotation.whole)),
                label::samples(annotation.own.samples),
                if event.is_empty() { String::new() } else { format!(" of {event}") }
            ),
        ];
        if function.extent.is_some() {
            let (start, end) = (annotation.listing.start.0, annotation.listing.end.0);
            lines.push(format!("Bounds:   {start:#x} to {end:#x}, by unwind information: it has no symbol"));
        }
        if annotated.path.as_os_str() != function.path.as_str() {
            lines.push(format!("Code:     {}", annotated.path.display()));
        }
        if annotation.is_adjusted {
            let measured = match annotation.listing.set() {
                InstructionSet::Aarch64 => " (a rule measured on x86)",
                InstructionSet::X86 | InstructionSet::X86_64 => "",
            };
            lines.push(format!(
                "Adjusted: moved from where a sample landed to what the processor waited for, one instruction before{measured}"
            ));
        } else if is_clock(event) && !annotated.texts.is_empty() {
            lines.push(format!("Adjusted: not; where samples of {event} land is only known for a timer's"));
        }
        if annotation.rows.iter().any(|row| row.called.samples > 0) {
            lines.push("Called:   of all, in what was called from there, the kernel included".into());
        }
        if annotation.outside.samples > 0 {
            lines.push(format!(
                "Warning:  {} samples are at no instruction of it",
                annotation.outside.samples
            ));
        }
        lines
    }

    /// Returns missing data and caveats, one per line.
    pub fn notes(&self) -> Vec<String> {
        self.notes_with(self.gap())
    }

    /// Returns the note on source lines that are not available.
    pub fn gap(&self) -> Option<String> {
        gaps::note(&self.annotated.annotation, &self.sources)
    }

    /// As [`notes`](Self::notes), with a given note on missing source lines, if it isn't shown elsewhere.
    pub fn notes_with(&self, gap: Option<String>) -> Vec<String> {
        let annotated = self.annotated;
        let mut lines = Vec::new();
        let stayed = |doubt: &Doubt| *doubt != Doubt::AfterBranch;
        let doubts: Vec<Doubt> = annotated.annotation.rows.iter().filter_map(|row| row.doubt).collect();
        if doubts.contains(&Doubt::AfterBranch) {
            lines.push(
                "~ behind a jump: it may be that the jump was predicted wrongly, or its code had to be fetched; take the block".into(),
            );
        }
        if doubts.iter().any(stayed) {
            lines.push("~ else: samples stay where they landed, since what ran before isn't known".into());
        }
        lines.extend(gap);
        let built = std::fs::metadata(&annotated.path).and_then(|meta| meta.modified());
        for file in built.map(|built| self.sources.newer_than(built)).unwrap_or_default() {
            lines.push(format!(
                "Source:   {file} was changed after the program was built: lines may be others"
            ));
        }
        for missing in &annotated.missing {
            let remedy = missing.remedy();
            let remedy = if remedy.is_empty() { String::new() } else { format!("; {remedy}") };
            lines.push(format!("Missing:  {missing}{remedy}"));
        }
        lines
    }
}
