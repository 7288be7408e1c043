//! A function's code beside its samples: brings together `analyze`, which reads no files, and `symbolize`, which knows no samples.

use std::collections::BTreeMap;
use std::path::PathBuf;

use plumb_analyze::{Annotation, Listing, SampledFunction, SourcePlace, View};
use plumb_profile::Address;
use plumb_symbolize::{Binary, Missing, NoCode, Options};

/// An annotated function with what its file told.
pub struct Annotated {
    /// What its instructions cost.
    pub annotation: Annotation,
    /// Its instructions as text.
    pub texts: Vec<String>,
    /// What stands at addresses outside of it that its instructions name.
    pub names: BTreeMap<Address, String>,
    /// Where its code was read.
    pub path: PathBuf,
    /// Why lines or names are missing, if they are.
    pub missing: Vec<Missing>,
}

/// Annotates `function` by the samples of `view`: one of an interpreted program by its lines alone.
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
    let listing = Listing::decode(code.start, &code.bytes, code.bits);
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
