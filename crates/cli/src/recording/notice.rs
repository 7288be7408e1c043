//! Messages about a command that Ctrl-C did not end, and about processes that outlive it.

use plumb_target::{Descendants, End, Notice, Target};

use crate::terminal::say;

/// Prints the message for a command of this name.
pub fn say(name: &str, notice: Notice) {
    say!("{}", text(name, notice));
}

/// Prints which processes outlive a command, if any.
pub fn say_left(left: Option<Descendants>) {
    let text = left.map(|left| left.living().to_string()).unwrap_or_default();
    if !text.is_empty() {
        say!("{text}");
    }
}

/// Says that a command keeps running although it should have ended with its recording, if so.
pub fn say_refused(target: &Target, end: Option<End>) {
    if matches!(end, Some(End::Signal(_))) {
        say_goes_on(target);
    }
}

/// Says that a command outlives its recording.
pub fn say_goes_on(target: &Target) {
    if let Target::Command(launch) = target {
        say!("{} has not ended: it goes on, and is no longer recorded", launch.name());
    }
}

/// Prints the message for a target that is a command.
pub fn say_of(target: &Target, notice: Notice) {
    if let Target::Command(launch) = target {
        say(&launch.name(), notice);
    }
}

fn text(name: &str, notice: Notice) -> String {
    match notice {
        Notice::Waiting(1) => format!("waiting for {name} to end; Ctrl-C once more kills it"),
        Notice::Waiting(more) => format!("waiting for {name} to end; Ctrl-C {more} times more kills it"),
        Notice::Killed => format!("killed {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_the_next_ctrl_c_does() {
        assert_eq!(text("make", Notice::Waiting(1)), "waiting for make to end; Ctrl-C once more kills it");
        assert!(text("make", Notice::Waiting(2)).contains("Ctrl-C 2 times more"));
    }
}
