//! The interactive display: draws and reads keys while samples arrive.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use plumb_record::{LiveSession, RecordRequest, WindowSum};
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::facts::facts;
use super::sampling::{self, Answer, NoAnswer, Sampling};
use super::save::Saving;
use super::{Args, Left, batch};
use crate::browse::draw::{self, Picture};
use crate::browse::keys::Action;
use crate::browse::screen::{Screen, has_colours};
use crate::browse::state::State;
use crate::browse::table::ViewTable;
use crate::terminal::say;

/// Longest delay of a key press.
const STEP: Duration = Duration::from_millis(30);

/// Data and state of the display.
struct Shown {
    state: State,
    stretch: WindowSum,
    /// Number of windows that were requested and have not arrived.
    awaited: usize,
    facts: Vec<String>,
    table: ViewTable,
    saving: Saving,
    /// Options for looking up names when a recording is saved.
    symbols: plumb_symbolize::Options,
    colours: bool,
}

/// Draws until the user quits or sampling ends, and then prints the last screen.
pub(super) fn run(
    args: &Args,
    request: &RecordRequest,
    live: &mut LiveSession,
    notes: Vec<String>,
) -> Result<Left> {
    let mut state = State::new(args.view, args.window);
    state.message = (!notes.is_empty()).then(|| notes.join("; "));
    let mut shown = Shown {
        state,
        stretch: WindowSum::default(),
        awaited: 0,
        facts: Vec::new(),
        table: ViewTable::default(),
        saving: Saving::default(),
        symbols: request.symbols(),
        colours: has_colours(),
    };
    let screen = Screen::open().context("cannot draw on the terminal; for plain text: --batch")?;
    let left = sampling::run(live, &mut (), |sampling| shown.run(args, &sampling, screen));
    let saved = shown.saving.wait();
    saved.iter().for_each(|saved| say!("{saved}"));
    let left = left?;
    if let Left::End(_) | Left::TimeUp = left {
        shown.state.paused = None;
        shown.show(live.sum_of_window(shown.state.window.nanoseconds(), None), args);
        batch::last(&shown.facts, shown.stretch.coverage_gap.as_deref(), &shown.table, args, &shown.state)?;
    }
    notes.iter().for_each(|note| say!("{note}"));
    Ok(left)
}

impl Shown {
    fn run(&mut self, args: &Args, sampling: &Sampling, mut screen: Screen) -> Result<()> {
        let mut asked = Instant::now();
        self.ask(sampling);
        self.draw(&mut screen)?;
        loop {
            let mut is_drawn = true;
            match sampling.answer(STEP) {
                Ok(Answer::Stretch(stretch)) => {
                    self.awaited -= 1;
                    self.show(*stretch, args);
                    is_drawn = false;
                }
                Ok(Answer::Everything(profile)) => {
                    let message = self.saving.begin(*profile, &args.output, self.symbols.clone());
                    self.state.message = Some(message);
                    is_drawn = false;
                }
                Err(NoAnswer::Later) => {}
                Err(NoAnswer::Never) => return Ok(()),
            }
            if let Some(saved) = self.saving.done() {
                self.state.message = Some(saved);
                is_drawn = false;
            }
            if screen.is_gone() {
                return Ok(());
            }
            while event::poll(Duration::ZERO)? {
                is_drawn = false;
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        match self.state.key(key, &self.table) {
                            Action::Quit => return Ok(()),
                            action => self.act(action, sampling),
                        }
                    }
                    _ => {}
                }
            }
            if asked.elapsed() >= args.interval && self.awaited == 0 {
                asked = Instant::now();
                self.ask(sampling);
            }
            if !is_drawn {
                self.draw(&mut screen)?;
            }
        }
    }

    fn act(&mut self, action: Action, sampling: &Sampling) {
        match action {
            Action::Draw | Action::NextEvent | Action::Annotate | Action::Diff | Action::Quit => return,
            Action::Count => {}
            Action::Pause => {
                let rates = self.stretch.rates;
                self.state.paused = if self.state.paused.is_some() { None } else { Some(rates) };
            }
            Action::Save => return sampling.ask_for_everything(),
            Action::Reset => {
                sampling.reset();
                self.state.paused = None;
            }
        }
        // At once from the data at hand, then from the requested window.
        self.table = ViewTable::new(&self.stretch.profile, &self.state);
        self.ask(sampling);
    }

    /// Requests the window for the current state: while paused, one of another length with the same end.
    fn ask(&mut self, sampling: &Sampling) {
        self.awaited += 1;
        sampling.ask_for(self.state.window, self.state.paused.map(|rates| rates.to_ns));
    }

    /// Recomputes the lines.
    fn show(&mut self, stretch: WindowSum, args: &Args) {
        self.stretch = stretch;
        self.table = ViewTable::new(&self.stretch.profile, &self.state);
        self.facts = facts(&self.stretch, args.interval);
    }

    fn draw(&mut self, screen: &mut Screen) -> Result<()> {
        let (title, facts, table) = ("plumb top", &self.facts[..], &self.table);
        let warning = self.stretch.coverage_gap.as_deref();
        let picture = Picture { title, facts, warning, table, colours: self.colours };
        Ok(screen.draw(|frame| draw::draw(frame, &mut self.state, &picture))?)
    }
}
