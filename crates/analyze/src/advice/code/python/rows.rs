//! Rule: pandas tables are read row by row.

use crate::advice::code::spent::{Code, Spent};
use crate::advice::code::{CodeRule, GainModel, Names, Rule, at_least};
use crate::cost::Cost;

/// Functions that read and write single rows and values.
const FUNCTIONS: Names = Names {
    whole: &[
        "DataFrame.iterrows",
        "DataFrame.itertuples",
        "Series.__getitem__",
        "Series.__setitem__",
        "_LocationIndexer.__getitem__",
        "_LocationIndexer.__setitem__",
        "_ScalarAccessIndexer.__getitem__",
        "_ScalarAccessIndexer.__setitem__",
        "FrameApply.apply_series_generator",
        // Before Python 3.11, names lack their class.
        "iterrows",
        "itertuples",
        "apply_series_generator",
    ],
    begin: &[],
};
/// Source files of these functions.
const FILES: &[&str] =
    &["/pandas/core/frame.py", "/pandas/core/series.py", "/pandas/core/indexing.py", "/pandas/core/apply.py"];

/// Minimum share of CPU time, in percent.
const LEAST: f64 = 15.0;

pub(in crate::advice) fn rule() -> CodeRule {
    let rule = Rule {
        name: "table-rows",
        claim: "goes through a table row by row",
        pattern: "rows and single values of a pandas table are taken one by one, each as an object of its own",
        threshold: at_least(LEAST),
        remedy: "compute with whole columns (a['x'] * a['y'], masks, groupby, merge); where rows are needed, zip() of columns or to_dict('records')",
        bound: "taking rows and values with all that it calls",
        source: "pandas' user guide, Enhancing performance; measured on CPython 3.11: 16 us a row by iterrows, 0.01 us by column",
    };
    CodeRule { gain: GainModel::Everything { least: 0.9, callers: 0.4 }, ..CodeRule::new(rule, LEAST, find) }
}

/// Maximum share of compiled code. Above it, many rows are processed at a time.
const MOST_COMPILED: f64 = 0.5;
/// Directories of the compiled parts of numpy and pandas.
const PACKAGES: [&str; 2] = ["/site-packages/", "/dist-packages/"];

fn find(code: &Code<'_, '_>) -> Spent {
    let is_one = code.named(&FUNCTIONS);
    let taken = code.below(|node| is_one[code.symbol(node).index()] && code.is_script_in(node, FILES));
    let is_compiled = |node: &u32| {
        let path = code.view().frame(code.tree().frame(*node)).dso_path;
        taken.has(*node) && PACKAGES.iter().any(|package| path.contains(package))
    };
    let compiled: Cost = code.tree().nodes().filter(is_compiled).map(|node| code.tree().own(node)).sum();
    match compiled.weight as f64 > MOST_COMPILED * taken.cost.weight as f64 {
        true => Spent::default(),
        false => taken,
    }
}
