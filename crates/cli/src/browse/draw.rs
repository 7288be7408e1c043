//! Draws the screen: facts, tabs, lines, keys. Works from 40 columns and 15 lines up, in the terminal's own colours.

use plumb_analyze::{cut_middle, shorten};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::render::document::text;
use crate::render::padding::{self, left};
use crate::terminal::Heat;

use super::flame;
use super::keys::{FILE_HELP, HELP, LIVE_HELP};
use super::state::{State, Tab, TimeRange, Typing};
use super::table::{self, ViewTable};

/// Narrowest column for names.
const NARROWEST: usize = 16;

/// Part of the screen's height that a warning may take: one line of this many.
const WARNING_PART: u16 = 6;

/// Everything that is drawn.
pub struct Picture<'a> {
    /// The command.
    pub title: &'a str,
    /// Facts about the recording, for the header.
    pub facts: &'a [String],
    /// A sentence on a defect of the data, below the facts.
    pub warning: Option<&'a str>,
    pub table: &'a ViewTable,
    /// Whether to use colours.
    pub colours: bool,
}

/// Draws the screen, and stores its size in the state.
pub fn draw(frame: &mut Frame<'_>, state: &mut State, picture: &Picture<'_>) {
    let area = frame.area();
    let width = usize::from(area.width);
    if state.help {
        frame.render_widget(Paragraph::new(help(state, width)), area);
        return;
    }
    let mut lines = wrap(picture.title, picture.facts, width);
    if let Some(warning) = picture.warning {
        let rows = text::wrap(warning, width);
        let most = usize::from(area.height / WARNING_PART).max(1);
        lines
            .extend(rows.into_iter().take(most).map(|row| Line::styled(row, warning_style(picture.colours))));
    }
    lines.push(tabs(state, width));
    state.width = width;
    if state.tab == Tab::Flame {
        return flame_graph(frame, state, picture, lines);
    }
    lines.push(titles(state, width));
    let head = lines.len();
    let page = usize::from(area.height).saturating_sub(head + 1);
    let visible = state.visible(picture.table);
    scroll(state, visible.len(), page);
    for (at, &index) in visible.iter().enumerate().skip(state.top).take(page) {
        let line = row(state, picture, index, width);
        lines.push(if at == state.cursor {
            line.style(Style::new().add_modifier(Modifier::REVERSED))
        } else {
            line
        });
    }
    if visible.is_empty() && page > 0 {
        let why = match (state.wanted.is_empty(), state.is_live) {
            (false, _) => "no line has this text",
            (true, true) => "no samples in this window",
            (true, false) => "no samples",
        };
        lines.push(Line::from(why));
    }
    frame.render_widget(Paragraph::new(lines), area);
    frame.render_widget(Paragraph::new(footer(state, visible.len(), width)), last_line(area));
}

fn last_line(area: Rect) -> Rect {
    Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area }
}

/// The flame graph under these lines, with the call under the cursor at the bottom.
fn flame_graph<'a>(
    frame: &mut Frame<'_>,
    state: &mut State,
    picture: &'a Picture<'a>,
    mut lines: Vec<Line<'a>>,
) {
    let area = frame.area();
    let width = usize::from(area.width);
    let size = (width, usize::from(area.height).saturating_sub(lines.len() + 1));
    let wanted = state.wanted.to_lowercase();
    let (rows, said) = flame::draw(picture.table, &mut state.flame, &wanted, size, picture.colours);
    lines.extend(rows);
    frame.render_widget(Paragraph::new(lines), area);
    let said = said.filter(|_| state.typing == Typing::Nothing && state.message.is_none());
    let line = match said {
        Some(said) => Line::from(cut_middle(&said, width)),
        None => footer(state, 0, width),
    };
    frame.render_widget(Paragraph::new(line), last_line(area));
}

/// Keeps the cursor on a line and on the screen.
fn scroll(state: &mut State, lines: usize, page: usize) {
    state.page = page.max(1);
    state.cursor = state.cursor.min(lines.saturating_sub(1));
    state.top = state.top.min(state.cursor).max((state.cursor + 1).saturating_sub(state.page));
}

fn warning_style(colours: bool) -> Style {
    if colours { Style::new().fg(Color::Yellow) } else { Style::new().add_modifier(Modifier::BOLD) }
}

/// The facts, wrapped into lines.
fn wrap(title: &str, facts: &[String], width: usize) -> Vec<Line<'static>> {
    let mut lines: Vec<String> = vec![title.into()];
    for fact in facts {
        let line = lines.last().map_or(0, |line| padding::width(line));
        if line + 2 + padding::width(fact) > width {
            lines.push(fact.clone());
        } else if let Some(line) = lines.last_mut() {
            line.push_str("  ");
            line.push_str(fact);
        }
    }
    lines.into_iter().map(Line::from).collect()
}

/// The tab bar: the current view, its filters, and whether the display is paused.
fn tabs(state: &State, width: usize) -> Line<'static> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut spans = Vec::new();
    if state.paused.is_some() {
        spans.push(Span::styled("[paused] ", bold));
    }
    let filters: String =
        state.narrowed.iter().map(|(narrow, _)| format!("> {} ", cut_middle(&narrow.text(), 24))).collect();
    // The filters must be visible; the names of other views are in the help too.
    let names: usize = Tab::ALL.iter().map(|tab| tab.key().1.len() + 3).sum();
    let is_narrow = names + padding::width(&filters) > width;
    for tab in Tab::ALL {
        let (key, name) = tab.key();
        let is_shown = tab == state.tab;
        let text = if is_narrow && !is_shown { key.to_string() } else { format!("{key}:{name}") };
        let style = if is_shown { bold.add_modifier(Modifier::UNDERLINED) } else { Style::new() };
        spans.extend([Span::styled(text, style), Span::raw(" ")]);
    }
    spans.push(Span::raw(filters));
    Line::from(spans)
}

fn titles(state: &State, width: usize) -> Line<'static> {
    let (name, place) = state.tab.titles();
    let (names, places) = columns(state, width);
    let mark = |by_self| if state.tab == Tab::Symbols && state.by_self == by_self { "↓" } else { "" };
    let own = format!("{:>8} ", format!("{}{}", state.share_title(), mark(true)));
    let total =
        if state.has_total() { format!("{:>9} ", format!("Children{}", mark(false))) } else { String::new() };
    let (name, place) = (left(&cut_middle(name, names), names), cut_middle(place, places));
    let text = format!("{total}{own} {name}  {place}");
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

/// Widths of the name and place columns; the latter is 0 where it does not fit.
fn columns(state: &State, width: usize) -> (usize, usize) {
    let shares = if state.has_total() { 20 } else { 10 };
    let room = width.saturating_sub(shares);
    let places = if room >= 3 * NARROWEST { room / 3 } else { 0 };
    (room.saturating_sub(places + if places > 0 { 2 } else { 0 }), places)
}

fn row<'a>(state: &State, picture: &'a Picture<'_>, index: usize, width: usize) -> Line<'a> {
    let Some(line) = picture.table.lines.get(index) else { return Line::default() };
    let (names, places) = columns(state, width);
    let heat = |share| if picture.colours { heat(share) } else { Style::new() };
    let mut spans = Vec::new();
    if state.has_total() {
        spans.push(Span::styled(format!("{:>9} ", picture.table.percent(line.total)), heat(line.total)));
    }
    spans.push(Span::styled(format!("{:>8}  ", picture.table.percent(line.own)), heat(line.own)));
    spans.push(Span::raw(left(&name(state, picture.table, line, index, names), names)));
    if places > 0 {
        spans.push(Span::raw(format!("  {}", cut_middle(&line.place, places))));
    }
    Line::from(spans)
}

fn name(state: &State, table: &ViewTable, line: &table::ViewLine, index: usize, width: usize) -> String {
    if !state.tab.is_tree() {
        return match state.tab {
            Tab::Symbols => shorten(&line.name, width).into_owned(),
            _ => cut_middle(&line.name, width),
        };
    }
    let mark = match (line.children, state.is_open(table, index)) {
        (0, _) => "  ",
        (_, true) => "▾ ",
        (_, false) => "▸ ",
    };
    // However deep the line is, some of its name stays visible.
    let indent = line.indent.min(width.saturating_sub(NARROWEST) / 2);
    let room = width.saturating_sub(2 * indent + 2);
    format!("{}{mark}{}", "  ".repeat(indent), shorten(&line.name, room))
}

/// The colours that reports use for shares, readable on dark and light.
fn heat(hundredths: u32) -> Style {
    match Heat::of(f64::from(hundredths) / 100.0) {
        Heat::Hot => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        Heat::Warm => Style::new().fg(Color::Green),
        Heat::Cold => Style::new(),
    }
}

fn footer(state: &State, lines: usize, width: usize) -> Line<'static> {
    match &state.typing {
        Typing::Nothing => {}
        Typing::Text => return Line::from(format!("/{}▏", state.wanted)),
        Typing::Filter(text) => return Line::from(format!(":{text}▏")),
    }
    if let Some(message) = &state.message {
        return Line::from(cut_middle(message, width));
    }
    let mut text = match state.window {
        _ if !state.is_live => String::new(),
        TimeRange::All => "all  ".to_owned(),
        TimeRange::Last(length) => format!("last {} s  ", length.as_secs_f64()),
    };
    if !state.wanted.is_empty() {
        text += &format!("/{}: {lines} lines  ", state.wanted);
    }
    text += match state.is_live {
        _ if width < 60 => "? help  q quit",
        true => "/ filter  Enter narrow  d window  w write  ? help  q quit",
        false => "/ find  : filter  Enter narrow  Esc back  a annotate  ? help  q quit",
    };
    Line::from(cut_middle(&text, width))
}

fn help(state: &State, width: usize) -> Vec<Line<'static>> {
    let others = if state.is_live { &LIVE_HELP[..] } else { &FILE_HELP };
    let keys = HELP.iter().chain(others).map(|&(key, meaning)| {
        let key = Span::styled(format!("{key:<14}"), Style::new().add_modifier(Modifier::BOLD));
        Line::from(vec![key, Span::raw(cut_middle(meaning, width.saturating_sub(14)))])
    });
    keys.collect()
}
