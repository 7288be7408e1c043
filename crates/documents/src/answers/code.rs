//! A function's instructions and source lines, read from where the recording says that they are.

use plumb_analyze::{Pattern, SampledFunction, View, sampled, sampled_scripts};
use plumb_symbolize::Options;

use super::selected::Selected;
use super::{Answer, AnswerError, NamedFiles, Question, body};
use crate::code::annotate;
use crate::listing::ListingDocument;
use crate::source::Sources;

/// The listing of the function called `name`, in the file `file` if several have one.
pub(super) fn listing(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    let selected = Selected::new(asked.parameters, &["name", "file"])?;
    let name = selected.required("name")?;
    if asked.named_files == NamedFiles::Ignore {
        let (view, _) = selected.view(&asked.recording.profile)?;
        return body(&super::lines::document(&view, name, selected.text("file"))?);
    }
    let (view, filter) = selected.view(&asked.recording.profile)?;
    let function = hottest(&view, name, selected.text("file"))?;
    let annotated = annotate(&view, &function, &Options::default()).map_err(|why| {
        let message = format!("cannot show the code of {} in {}: {why}", function.name, function.path);
        AnswerError::NotFound(message)
    })?;
    let mut sources = Sources::new(Vec::new());
    let mut document = ListingDocument::new(&view, filter.event, &function, &annotated, &mut sources);
    let missing = sources.missing().map(|(file, why)| format!("source {file}: {why}"));
    let lacking = annotated.missing.iter().map(|missing| missing.to_string());
    document.notes = missing.chain(lacking).collect();
    body(&document)
}

/// The function of that name, or else the one that most of it was inlined into: the one with the most samples, if there are several.
fn hottest(view: &View<'_>, name: &str, file: Option<&str>) -> Result<SampledFunction, AnswerError> {
    let module = file.map(|file| Pattern::Exact(file.to_owned()));
    let pattern = Pattern::Exact(name.to_owned());
    let mut found = sampled(view, Some(&pattern), module.as_ref());
    if found.is_empty() {
        // Functions of scripts belong to a file that is named after the language.
        found = sampled_scripts(view, Some(&pattern), None);
        let dso = |one: &SampledFunction| view.profile().strings.get(view.profile().dsos[one.dso].path);
        found.retain(|one| file.is_none_or(|file| file == dso(one) || file == one.path));
    }
    let best = found.into_iter().max_by_key(|one| (one.inlined.is_empty(), one.own.weight));
    best.ok_or_else(|| {
        AnswerError::NotFound(format!(
            "no code of {name:?} is on a stack of the selection: what has no symbol has no listing"
        ))
    })
}
