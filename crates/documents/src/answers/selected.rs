//! Converts parameters into a selection, with the words of `plumb report`, and reads an answer's numbers.
//!
//! Invariant: an unknown parameter is rejected, so that no filter in the URL is silently ignored.

use plumb_analyze::{Filter, Selection, SelectionWord, View};
use plumb_profile::Profile;

use super::{AnswerError, Parameters};

/// The selection in the parameters.
pub struct Selected<'a> {
    parameters: &'a Parameters,
    selection: Selection,
}

impl<'a> Selected<'a> {
    /// Reads parameters. `known` are the names that an answer accepts besides selection words.
    pub fn new(parameters: &'a Parameters, known: &[&str]) -> Result<Self, AnswerError> {
        let mut selection = Selection::default();
        for (name, text) in parameters.iter() {
            match SelectionWord::from_name(name) {
                Some(word) => selection.add(word, text),
                None if known.contains(&name) => {}
                None if known.contains(&"base") && is_base(name) => {}
                None => {
                    let words: Vec<&str> = SelectionWord::ALL.map(SelectionWord::name).to_vec();
                    return Err(AnswerError::Invalid(format!(
                        "unknown parameter `{name}`; there are {}",
                        [known, &words].concat().join(", ")
                    )));
                }
            }
        }
        Ok(Self { parameters, selection })
    }

    /// Returns the selection to compare with, in which `base-WORD` replaces WORD. `None` without such words.
    pub fn base(&self) -> Option<Self> {
        let words = SelectionWord::ALL.map(|word| (word, format!("base-{}", word.name())));
        let given: Vec<(SelectionWord, &str)> = words
            .iter()
            .flat_map(|(word, name)| self.parameters.all(name).map(move |text| (*word, text)))
            .collect();
        if given.is_empty() {
            return None;
        }
        let replaced: Vec<SelectionWord> = given.iter().map(|(word, _)| *word).collect();
        let mut selection = self.selection.without(&replaced);
        given.into_iter().for_each(|(word, text)| selection.add(word, text));
        Some(Self { parameters: self.parameters, selection })
    }

    /// Returns the filter of one event: the selected one, or the first with samples.
    pub fn filter(&self, profile: &Profile) -> Result<Filter, AnswerError> {
        let mut filters = self.selection.filter_per_event(profile).map_err(invalid)?;
        Ok(filters.swap_remove(0))
    }

    /// Returns the filter of one event at all times.
    pub fn any_time(&self, profile: &Profile) -> Result<Filter, AnswerError> {
        let selection = self.selection.without(&[SelectionWord::Time]);
        let mut filters = selection.filter_per_event(profile).map_err(invalid)?;
        Ok(filters.swap_remove(0))
    }

    /// Returns the filter of all events and all times.
    pub fn whole(&self, profile: &Profile) -> Result<Filter, AnswerError> {
        let words = [SelectionWord::Event, SelectionWord::Time];
        self.selection.without(&words).filter(profile).map_err(invalid)
    }

    /// Returns the filter of all events, or of the selected one.
    pub fn all_events(&self, profile: &Profile) -> Result<Filter, AnswerError> {
        self.selection.filter(profile).map_err(invalid)
    }

    /// Returns the filter without any event.
    pub fn any_event(&self, profile: &Profile) -> Result<Filter, AnswerError> {
        self.selection.without(&[SelectionWord::Event]).filter(profile).map_err(invalid)
    }

    /// Returns the selection as command-line options.
    pub fn typed(&self) -> String {
        self.selection.typed()
    }

    /// Returns the view of one event.
    pub fn view<'p>(&self, profile: &'p Profile) -> Result<(View<'p>, Filter), AnswerError> {
        let filter = self.filter(profile)?;
        Ok((View::new(profile, &filter), filter))
    }

    /// Returns a number within a range.
    pub fn number(
        &self,
        name: &str,
        default: usize,
        range: std::ops::RangeInclusive<usize>,
    ) -> Result<usize, AnswerError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
            AnswerError::Invalid(format!(
                "{name}={text}: expected a whole number from {} to {}",
                range.start(),
                range.end()
            ))
        })
    }

    /// Returns a percentage.
    pub fn percent(&self, name: &str, default: f64) -> Result<f64, AnswerError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|share| (0.0..=100.0).contains(share));
        number.ok_or_else(|| {
            AnswerError::Invalid(format!("{name}={text}: expected a percentage from 0 to 100"))
        })
    }

    /// Returns a parameter, unless it is empty.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.parameters.get(name).filter(|text| !text.is_empty())
    }

    /// Returns a required parameter.
    pub fn required(&self, name: &str) -> Result<&'a str, AnswerError> {
        self.text(name).ok_or_else(|| AnswerError::Invalid(format!("the parameter `{name}` is missing")))
    }
}

/// Whether a parameter selects the base of a comparison.
fn is_base(name: &str) -> bool {
    name.strip_prefix("base-").and_then(SelectionWord::from_name).is_some()
}

fn invalid(error: plumb_analyze::BadSelection) -> AnswerError {
    // Selection words are also command-line options, which have dashes there.
    AnswerError::Invalid(error.to_string().trim_start_matches("--").to_owned())
}
