//! A function's code with its samples: combines `analyze`, which reads no files, and `symbolize`, which does not know samples.

use std::collections::BTreeMap;
use std::path::PathBuf;

use plumb_analyze::{Annotation, Listing, SampledFunction, SourcePlace, View};
use plumb_profile::Address;
use plumb_symbolize::{Binary, Missing, NoCode, Options};

/// An annotated function with information from its file.
pub struct Annotated {
    /// Costs of the instructions.
    pub annotation: Annotation,
    /// Text of the instructions.
    pub texts: Vec<String>,
    /// Names of addresses outside the function that its instructions refer to.
    pub names: BTreeMap<Address, String>,
    /// Path that the code was read from.
    pub path: PathBuf,
    /// Reasons for missing lines or names.
    pub missing: Vec<Missing>,
}

/// Annotates `function` with the samples of `view`; one of an interpreted program only by line.
pub fn annotate(view: &View<'_>, function: &SampledFunction, options: &Options) -> Result<Annotated, NoCode> {
    if function.is_script(view) {
        return Ok(Annotated {
            annotation: Annotation::of_script(view, function),
            texts: Vec::new(),
            names: BTreeMap::new(),
            path: function.path.clone().into(),
            missing: Vec::new(),
        });
    }
    let mut binary = Binary::open(view.profile(), function.dso, options)?;
    let code = binary.code(function.start.unwrap_or(function.address))?;
    let listing = Listing::decode(code.start, &code.bytes, code.set);
    let addresses: Vec<Address> = listing.instructions().iter().map(|i| i.address).collect();
    let (found, missing) = binary.places(&addresses);
    let names: BTreeMap<Address, String> =
        listing.targets().into_iter().filter_map(|address| Some((address, binary.name(address)?))).collect();
    let places = found.into_iter().map(|places| places.into_iter().map(source_place).collect()).collect();
    let texts = listing.texts(&names);
    let annotation = Annotation::new(view, function, listing, places);
    Ok(Annotated { annotation, texts, names, path: binary.path().into(), missing })
}

fn source_place(place: plumb_symbolize::CodePlace) -> SourcePlace {
    SourcePlace { function: place.function, file: place.file, line: place.line }
}
