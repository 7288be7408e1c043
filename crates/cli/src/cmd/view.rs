//! `plumb view`: browses a recording in the terminal.
//!
//! Tables, trees, keys and drawing are shared with `plumb top` (`browse`).

mod listing;

use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use plumb_analyze::{Filter, Precision, Summary, View};
use plumb_profile::Profile;
use ratatui::Frame;
use ratatui::crossterm::event::{Event, KeyEvent, KeyEventKind};

use crate::args::FilterArgs;
use crate::browse::draw::{self, Picture};
use crate::browse::keys::Action;
use crate::browse::screen::{Screen, has_colours};
use crate::browse::state::{Narrow, State, Tab};
use crate::browse::table::ViewTable;
use crate::examples;
use crate::exit::Exit;
use crate::render::label;
use crate::terminal::{Output, printable};
use listing::{Listing, Then};

/// Arguments of `plumb view`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = examples::below(
        "Keys: e executables, p processes, T threads, s symbols, t stacks, c callers, f flame graph; / find,\n\
         : filter (time 1-2, comm NAME), Enter narrow down, Esc back, o order, E C open and close all,\n\
         a annotate, d diff, n next event, ? help, q quit.",
        examples::VIEW
    )
)]
pub struct Args {
    /// Recording, or a profile of another tool
    #[arg(default_value = "profile.plumb")]
    file: PathBuf,
    /// Initial view
    #[arg(long, value_enum, value_name = "VIEW", default_value_t = Tab::Symbols)]
    view: Tab,
    /// Base recording: the key d shows the difference
    #[arg(long, value_name = "FILE")]
    base: Option<PathBuf>,
    #[command(flatten)]
    filters: FilterArgs,
}

/// Output of other commands that this one shows: set by the caller, which knows all commands.
#[derive(Clone, Copy)]
pub struct Listings {
    /// The instructions of a function, from the samples that a filter keeps.
    pub annotate: fn(&Profile, &Filter, &str, &mut Output<'_>) -> Result<()>,
    /// The changes from one recording to another.
    pub diff: fn([&Path; 2], &FilterArgs, &mut Output<'_>) -> Result<()>,
}

/// Runs `plumb view`.
pub fn run(args: Args, listings: Listings) -> Result<Exit> {
    if !stdout().is_terminal() {
        bail!("standard output is no terminal; for tables as plain text: plumb report");
    }
    let profile = crate::load::load(&args.file, &args.filters.symfs)?;
    let events = args.filters.filter_per_event(&profile)?;
    let mut shown = Shown::new(&profile, &events, &args, listings);
    let mut screen = Screen::open().context("cannot draw on the terminal; for plain text: plumb report")?;
    let colours = has_colours();
    loop {
        screen.draw(|frame| shown.draw(frame, colours))?;
        let Some(event) = screen.wait()? else { return Ok(Exit::Success) };
        let Event::Key(key) = event else { continue };
        if key.kind != KeyEventKind::Release && !shown.key(key) {
            return Ok(Exit::Success);
        }
    }
}

/// State of the view of a profile.
struct Shown<'p> {
    args: &'p Args,
    listings: Listings,
    profile: &'p Profile,
    /// A filter for each event; never empty.
    events: &'p [Filter],
    event: usize,
    state: State,
    facts: Vec<String>,
    table: ViewTable,
    /// The listing that covers the view, if any.
    listing: Option<Listing>,
}

impl<'p> Shown<'p> {
    fn new(profile: &'p Profile, events: &'p [Filter], args: &'p Args, listings: Listings) -> Self {
        let state = State::of_file(args.view, events.first().cloned().unwrap_or_default());
        let (facts, table) = (Vec::new(), ViewTable::default());
        let mut shown =
            Shown { args, listings, profile, events, event: 0, state, facts, table, listing: None };
        let warnings = &profile.meta.warnings;
        shown.state.message = (!warnings.is_empty()).then(|| printable(&warnings.join("; ")).into_owned());
        shown.count();
        shown
    }

    fn draw(&mut self, frame: &mut Frame<'_>, colours: bool) {
        if let Some(listing) = &mut self.listing {
            return listing.draw(frame);
        }
        let (title, facts, table) = ("plumb view", &self.facts[..], &self.table);
        draw::draw(frame, &mut self.state, &Picture { title, facts, warning: None, table, colours });
    }

    /// Handles a key; returns whether to go on.
    fn key(&mut self, key: KeyEvent) -> bool {
        if let Some(listing) = &mut self.listing {
            let then = listing.key(key);
            if then == Then::Back {
                self.listing = None;
            }
            return then != Then::Quit;
        }
        match self.state.key(key, &self.table) {
            Action::Quit => return false,
            Action::Count => self.count(),
            Action::NextEvent => self.next_event(),
            Action::Annotate => self.annotate(),
            Action::Diff => self.diff(),
            // For live recordings only.
            Action::Draw | Action::Pause | Action::Save | Action::Reset => {}
        }
        true
    }

    /// Shows the instructions of the function under the cursor, or the error.
    fn annotate(&mut self) {
        let line = self.state.current(&self.table);
        let Some((name, file)) = line.and_then(|line| match &line.narrow {
            Some(Narrow::Symbol(name)) => Some((name, &line.place)),
            _ => None,
        }) else {
            self.state.message = Some("only functions can be annotated".into());
            return;
        };
        let function = format!("{name}@{file}");
        let (profile, filter) = (self.profile, self.state.base.clone());
        let annotate = self.listings.annotate;
        self.list(|out| annotate(profile, &filter, &function, out));
    }

    /// Shows the changes from the base.
    fn diff(&mut self) {
        let Some(base) = &self.args.base else {
            let file = self.args.file.display();
            self.state.message =
                Some(printable(&format!("from what? plumb view --base BEFORE {file}")).into_owned());
            return;
        };
        let (args, diff) = (self.args, self.listings.diff);
        self.list(|out| diff([base, &args.file], &args.filters, out));
    }

    /// Shows the output of `write`, or its error.
    fn list(&mut self, write: impl FnOnce(&mut Output<'_>) -> Result<()>) {
        let mut text = Vec::new();
        let written = write(&mut Output::lines(&mut text, self.state.width, has_colours()));
        if let Err(error) = written {
            text = format!("{error:#}").into_bytes();
        }
        self.listing = Some(Listing::new(&text));
    }

    fn next_event(&mut self) {
        if self.events.len() < 2 {
            self.state.message = Some("there are no other events".into());
            return;
        }
        self.event = (self.event + 1) % self.events.len();
        self.state.base = self.events[self.event].clone();
        self.count();
    }

    /// Recomputes lines and facts. An invalid typed filter is removed.
    fn count(&mut self) {
        if let Err(error) = self.state.filter(self.profile) {
            self.state.narrowed.pop();
            self.state.message = Some(error.to_string().trim_start_matches("--").to_owned());
        }
        self.table = ViewTable::new(self.profile, &self.state);
        self.facts = facts(self.profile, &self.state.filter(self.profile).unwrap_or_default());
    }
}

/// Facts on the samples of an event, most important first.
fn facts(profile: &Profile, filter: &Filter) -> Vec<String> {
    let view = View::new(profile, filter);
    let event = filter.event.or_else(|| profile.events.iter().next().map(|(id, _)| id));
    let text = |id| printable(profile.strings.get(id)).into_owned();
    let (name, unit) = event.map_or_else(Default::default, |event| {
        let event = &profile.events[event];
        (text(event.name), text(event.unit))
    });
    let cost = view.part();
    let mut facts =
        vec![format!("{} of {name}", label::samples(cost.samples)).trim_end_matches(" of ").to_owned()];
    facts.push(match &*unit {
        "ns" => format!("{:.3} s", cost.weight as f64 / 1e9),
        unit => format!("{} {unit}", cost.weight).trim_end().to_owned(),
    });
    if let Some(complete) = Summary::new(&view).complete_percent() {
        let complete = Precision::of_samples(cost.samples).percent(complete);
        facts.push(format!("{complete} of stacks complete"));
    }
    facts.push(label::lost(&profile.meta, filter));
    if !profile.meta.command.is_empty() {
        facts.push(printable(&profile.meta.command.join(" ")).into_owned());
    }
    facts
}

#[cfg(test)]
mod tests;
