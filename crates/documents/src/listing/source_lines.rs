//! The function's source lines with their costs, file by file.

use std::collections::BTreeMap;

use super::FunctionListing;

/// Lines shown before and after one with code of the function.
const CONTEXT: u32 = 2;

/// Cost of a source line's code.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineCosts {
    /// Weight of the samples that landed on it.
    pub own: u64,
    /// Weight of those samples after adjusting.
    pub adjusted: f64,
    /// Weight of the samples in callees called from it.
    pub called: u64,
}

/// The shown lines of a file.
pub struct FileLines {
    /// The path from the debug information.
    pub path: String,
    /// The lines in order. Missing numbers are not shown.
    pub lines: Vec<SourceLine>,
}

/// A source line.
pub struct SourceLine {
    /// Line number, from 1.
    pub number: u32,
    /// Text of the line; empty if the file is missing.
    pub text: String,
    /// Cost of its code; `None` if the function has no code there.
    pub costs: Option<LineCosts>,
}

impl FunctionListing<'_, '_> {
    /// Returns the files that the function's code comes from, costliest first, and the cost of code without a line.
    ///
    /// `min`: smallest share of the function, in percent; `limit`: number of the hottest lines.
    pub fn files(&mut self, min: f64, limit: Option<usize>) -> (Vec<FileLines>, LineCosts) {
        let annotation = &self.annotated.annotation;
        let mut costs: BTreeMap<&str, BTreeMap<u32, LineCosts>> = BTreeMap::new();
        let mut without = LineCosts::default();
        for row in &annotation.rows {
            let costs = match row.places.first().filter(|place| place.line > 0) {
                Some(place) => costs.entry(&place.file).or_default().entry(place.line).or_default(),
                None => &mut without,
            };
            costs.own += row.own.weight;
            costs.adjusted += row.adjusted;
            costs.called += row.called.weight;
        }
        let least = least(&costs, limit);
        let mut order: Vec<(&str, BTreeMap<u32, LineCosts>)> = costs.into_iter().collect();
        let weight = |lines: &BTreeMap<u32, LineCosts>| lines.values().map(|line| line.adjusted).sum::<f64>();
        order.sort_by(|a, b| weight(&b.1).total_cmp(&weight(&a.1)).then(a.0.cmp(b.0)));
        let mut files = Vec::new();
        for (path, costs) in order {
            let matters = |costs: &LineCosts| {
                let weight = costs.adjusted.max(costs.own as f64);
                annotation.share(weight) >= min && costs.adjusted >= least
            };
            let around = |number: u32| number.saturating_sub(CONTEXT).max(1)..=number.saturating_add(CONTEXT);
            let mut numbers: Vec<u32> = costs
                .iter()
                .filter(|(_, costs)| matters(costs))
                .flat_map(|(&number, _)| around(number))
                .collect();
            numbers.sort_unstable();
            numbers.dedup();
            let lines: Vec<SourceLine> = numbers
                .into_iter()
                .filter_map(|number| {
                    let text = self.sources.line(path, number).map(|text| text.replace('\t', "    "));
                    let costs = costs.get(&number).cloned();
                    let is_there = text.is_some() || costs.is_some();
                    is_there.then(|| SourceLine { number, text: text.unwrap_or_default(), costs })
                })
                .collect();
            if !lines.is_empty() {
                files.push(FileLines { path: path.to_owned(), lines });
            }
        }
        (files, without)
    }
}

/// The smallest adjusted weight among the `limit` hottest lines; 0 without a limit.
fn least(costs: &BTreeMap<&str, BTreeMap<u32, LineCosts>>, limit: Option<usize>) -> f64 {
    let Some(limit) = limit else { return 0.0 };
    let mut weights: Vec<f64> = costs.values().flat_map(BTreeMap::values).map(|line| line.adjusted).collect();
    weights.sort_by(|a, b| b.total_cmp(a));
    weights.get(limit.saturating_sub(1)).copied().unwrap_or(0.0)
}
