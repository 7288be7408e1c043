//! The code of the hot functions, read from their files.

use plumb_analyze::{ReadCode, SampledFunction, View, worth_reading};
use plumb_symbolize::{NoCode, Options};

use crate::code::{Annotated, annotate};

/// The hot functions of which the code could be read, and the others.
pub struct HotFunctions {
    /// Those whose code was read.
    pub known: Vec<(SampledFunction, Annotated)>,
    /// The others, and why not.
    pub unknown: Vec<(SampledFunction, NoCode)>,
}

impl HotFunctions {
    /// Reads the code of the functions of a view that are worth it.
    pub fn read(view: &View<'_>) -> Self {
        let mut functions = HotFunctions { known: Vec::new(), unknown: Vec::new() };
        for function in worth_reading(view) {
            match annotate(view, &function, &Options::default()) {
                Ok(annotated) => functions.known.push((function, annotated)),
                Err(why) => functions.unknown.push((function, why)),
            }
        }
        functions
    }

    /// The functions of a view that are worth it, without reading any file.
    pub fn unread(view: &View<'_>) -> Self {
        let unknown = worth_reading(view).into_iter().map(|function| (function, NoCode::NotRead));
        Self { known: Vec::new(), unknown: unknown.collect() }
    }

    /// For the analysis.
    pub fn for_analysis(&self) -> Vec<ReadCode<'_>> {
        self.known
            .iter()
            .map(|(function, annotated)| ReadCode { function, annotation: &annotated.annotation })
            .collect()
    }
}
