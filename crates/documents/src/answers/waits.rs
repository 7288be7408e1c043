//! Answers with the time that threads were blocked, by what they waited for.

use plumb_analyze::{Filter, View, WaitSums};
use plumb_profile::Event;

use super::paths::Head;
use super::selected::Selected;
use super::{Answer, AnswerError, Question, body};
use crate::waits::WaitRow;

/// Answers with the kinds of waits, whatever event is selected.
pub(super) fn waits(asked: &Question<'_>) -> Result<Answer, AnswerError> {
    let Question { recording, parameters, .. } = *asked;
    let selected = Selected::new(parameters, &[])?;
    let profile = &*recording.profile;
    let none = || {
        let message =
            "this recording has no waits; to record them, as root: plumb record --off-cpu -- COMMAND";
        AnswerError::NotFound(message.into())
    };
    let is_waits = |event: &Event| profile.strings.get(event.name) == Event::OFF_CPU;
    let event = profile.events.iter().find(|(_, event)| is_waits(event)).map(|(id, _)| id);
    let filter = Filter { event: Some(event.ok_or_else(none)?), ..selected.any_event(profile)? };
    let mut view = View::new(profile, &filter);
    let waits = crate::waits::set_idle_aside(&mut view, &filter).ok_or_else(none)?;
    body(&WaitsAnswer::new(Head::new(&view, &filter), &waits))
}

document! {
    /// Weights are in nanoseconds and without idle waits. Waits: the largest first, idle last.
    pub(crate) struct WaitsAnswer<'p> as "WaitsAnswer" of (head: Head<'p>, waits: &WaitSums<'p>) {
        #[serde(flatten)]
        head: Head<'p> = head,
        waits: Vec<WaitRow> = crate::waits::document(waits),
        idle_threads: usize = waits.idle_threads(),
        /// The one that idles longest first.
        idle_names: Vec<&'p str> = waits.idle_names(),
    }
}
