//! The terminal: drawn on, listened to, and given back as it was, however this ends.

use std::io::stdout;
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use anyhow::{Context, Result};
use plumb_analyze::Rates;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::draw::{self, Picture};
use super::keys::Action;
use super::live::Live;
use super::save::Saving;
use super::state::State;
use super::table::Table;
use super::{Args, Left, batch};

/// How long a key waits at most.
const STEP: Duration = Duration::from_millis(50);

/// Gives the terminal back. What ratatui sets up does so for a panic.
struct Screen(DefaultTerminal);

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// What is shown.
struct Shown {
    state: State,
    rates: Rates,
    facts: Vec<String>,
    table: Table,
    saving: Saving,
    colours: bool,
}

/// Draws until the user leaves or there is no more to come: then what was seen last is printed.
pub(super) fn run(args: &Args, live: &mut Live, notes: Vec<String>) -> Result<Left> {
    let mut state = State::new(args.view, args.window);
    state.message = (!notes.is_empty()).then(|| notes.join("; "));
    let mut shown = Shown {
        state,
        rates: Rates::default(),
        facts: Vec::new(),
        table: Table::default(),
        saving: Saving::default(),
        colours: AutoStream::choice(&stdout()) != ColorChoice::Never,
    };
    let screen = Screen(ratatui::try_init().context("the terminal can't be drawn on; try --batch")?);
    let left = shown.run(args, live, screen);
    let saved = shown.saving.wait();
    saved.iter().for_each(|saved| eprintln!("plumb: {saved}"));
    let left = left?;
    if let Left::End(_) = left {
        shown.state.paused = None;
        shown.count(args, live);
        batch::last(&shown.facts, &shown.table, args, &shown.state)?;
    }
    notes.iter().for_each(|note| eprintln!("plumb: {note}"));
    Ok(left)
}

impl Shown {
    fn run(&mut self, args: &Args, live: &mut Live, mut screen: Screen) -> Result<Left> {
        let mut counted = Instant::now();
        self.count(args, live);
        self.draw(&mut screen)?;
        loop {
            if let Some(end) = live.step(STEP)? {
                return Ok(Left::End(end));
            }
            let mut is_drawn = true;
            if let Some(saved) = self.saving.done() {
                self.state.message = Some(saved);
                is_drawn = false;
            }
            while event::poll(Duration::ZERO)? {
                is_drawn = false;
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        match self.state.key(key, &self.table) {
                            Action::Quit => return Ok(Left::Quit),
                            action => self.act(action, args, live),
                        }
                    }
                    _ => {}
                }
            }
            if counted.elapsed() >= args.interval {
                counted = Instant::now();
                self.count(args, live);
                is_drawn = false;
            }
            if !is_drawn {
                self.draw(&mut screen)?;
            }
        }
    }

    fn act(&mut self, action: Action, args: &Args, live: &mut Live) {
        match action {
            Action::Draw | Action::Quit => {}
            Action::Count => self.count(args, live),
            Action::Pause => {
                self.state.paused = if self.state.paused.is_some() { None } else { Some(self.rates) };
                self.count(args, live);
            }
            Action::Save => {
                let message = self.saving.begin(live.so_far(), &args.output, args.scope.names());
                self.state.message = Some(message);
            }
            Action::Reset => {
                live.reset();
                self.state.paused = None;
                self.count(args, live);
            }
        }
    }

    /// Makes the lines anew.
    fn count(&mut self, args: &Args, live: &mut Live) {
        live.tick();
        self.rates = match self.state.paused {
            // Another length of the same past.
            Some(paused) => live.rates_until(paused.to_ns, self.state.window),
            None => live.rates(self.state.window),
        };
        let filter = self.state.filter();
        self.table = Table::new(&live.view(&self.rates, &filter), &filter, &self.state);
        self.facts = draw::facts(&self.rates, live.clock_hz(), args.interval);
    }

    fn draw(&mut self, screen: &mut Screen) -> Result<()> {
        let picture = Picture { facts: &self.facts, table: &self.table, colours: self.colours };
        screen.0.draw(|frame| draw::draw(frame, &mut self.state, &picture))?;
        Ok(())
    }
}
