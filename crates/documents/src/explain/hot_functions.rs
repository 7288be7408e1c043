//! The code of the hot functions, read from their files.

use plumb_analyze::{ReadCode, SampledFunction, View, worth_reading};
use plumb_symbolize::{NoCode, Options};

use crate::code::{Annotated, annotate};

/// The hot functions whose code could be read, and the others.
pub struct HotFunctions {
    /// Functions whose code was read.
    pub known: Vec<(SampledFunction, Annotated)>,
    /// The other functions, with the reasons.
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

    /// Returns the functions of a view that are worth reading, without reading any file.
    pub fn unread(view: &View<'_>) -> Self {
        let unknown = worth_reading(view).into_iter().map(|function| (function, NoCode::NotRead));
        Self { known: Vec::new(), unknown: unknown.collect() }
    }

    /// Returns them as input of the analysis.
    pub fn for_analysis(&self) -> Vec<ReadCode<'_>> {
        self.known
            .iter()
            .map(|(function, annotated)| ReadCode { function, annotation: &annotated.annotation })
            .collect()
    }
}
