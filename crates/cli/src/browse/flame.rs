//! The flame graph on the terminal: the tree of stacks with its roots on top, widths by share.
//!
//! The cursor is on a call. Calls narrower than a column are left out, except the one under the cursor: zooming in shows
//! them. Elsewhere: the tree (`table`), colours of shares (`draw`).

use plumb_analyze::shorten;
use ratatui::crossterm::event::KeyCode;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::table::ViewTable;
use crate::render::padding::left;

/// The user's position in the flame graph, by the [`id`](super::table::ViewLine::id)s of lines: line numbers change when samples come in.
#[derive(Clone, Debug, Default)]
pub struct Position {
    /// The call under the cursor; `None`: the widest root.
    pub at: Option<String>,
    /// The call that is as wide as the screen, with its callers above it.
    pub zoom: Option<String>,
    /// The first level on the screen.
    pub top: usize,
}

/// A drawn call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// Index of its line in the table.
    pub line: usize,
    /// First column of the cell.
    pub from: usize,
    /// The column after its last one.
    pub to: usize,
}

/// The calls of each level, from the roots down and from left to right.
pub(super) fn levels(table: &ViewTable, position: &Position, width: usize) -> Vec<Vec<Cell>> {
    let find =
        |id: &Option<String>| id.as_ref().and_then(|id| table.lines.iter().position(|line| line.id == *id));
    let zoom = find(&position.zoom);
    let at = find(&position.at);
    let callers: Vec<usize> = std::iter::successors(zoom, |&line| table.lines[line].parent).collect();
    let mut levels: Vec<Vec<Cell>> = Vec::new();
    // For each line: its level, its start and width in columns, and where its next callee starts.
    let mut places: Vec<Option<(usize, f64, f64, f64)>> = Vec::with_capacity(table.lines.len());
    let whole: u32 = table.lines.iter().filter(|line| line.parent.is_none()).map(|line| line.total).sum();
    let mut roots = 0.0;
    for (index, line) in table.lines.iter().enumerate() {
        let above = line.parent.and_then(|parent| places[parent]);
        let hidden = line.parent.is_some() && above.is_none();
        let on_the_way = callers.contains(&index);
        let beside =
            !on_the_way && line.parent.is_none_or(|parent| Some(parent) != zoom && callers.contains(&parent));
        if hidden || (zoom.is_some() && beside) {
            places.push(None);
            continue;
        }
        let (level, from, room) = match above {
            Some((level, from, room, next)) => (level + 1, next.max(from), room),
            None => (0, roots, width as f64),
        };
        let of = line.parent.map_or(whole, |parent| table.lines[parent].total);
        let share = f64::from(line.total) / f64::from(of.max(1)) * room;
        let (from, wide) = if on_the_way { (0.0, width as f64) } else { (from, share) };
        places.push(Some((level, from, wide, from)));
        match line.parent.and_then(|parent| places[parent].as_mut()) {
            Some(parent) => parent.3 = from + wide,
            None => roots = from + wide,
        }
        let (first, mut last) = (from.round() as usize, (from + wide).round() as usize);
        if Some(index) == at {
            last = last.max(first + 1).min(width);
        }
        if first < last.min(width) {
            levels.resize_with(levels.len().max(level + 1), Vec::new);
            levels[level].push(Cell { line: index, from: first, to: last.min(width) });
        }
    }
    levels
}

/// The cell under the cursor: its level and its index there.
fn cursor(levels: &[Vec<Cell>], table: &ViewTable, position: &Position) -> (usize, usize) {
    let is_at = |cell: &Cell| position.at.as_ref() == Some(&table.lines[cell.line].id);
    let found =
        levels.iter().enumerate().find_map(|(level, cells)| Some((level, cells.iter().position(is_at)?)));
    found.unwrap_or_else(|| {
        let is_zoom = |cell: &Cell| position.zoom.as_ref() == Some(&table.lines[cell.line].id);
        let zoomed = levels.iter().position(|cells| cells.iter().any(is_zoom));
        (zoomed.unwrap_or(0), 0)
    })
}

/// Handles the arrow keys, Enter and Esc. Returns whether the key has a meaning here.
pub(super) fn key(code: KeyCode, table: &ViewTable, position: &mut Position, width: usize) -> bool {
    let levels = levels(table, position, width);
    if levels.is_empty() {
        return false;
    }
    let (level, number) = cursor(&levels, table, position);
    let here = levels[level][number];
    let to = match code {
        KeyCode::Up | KeyCode::Char('k') => table.lines[here.line]
            .parent
            .filter(|&parent| levels[..level].iter().flatten().any(|cell| cell.line == parent)),
        KeyCode::Down | KeyCode::Char('j') => {
            let below = levels.get(level + 1).into_iter().flatten();
            let callees = below.filter(|cell| table.lines[cell.line].parent == Some(here.line));
            callees.max_by_key(|cell| (cell.to - cell.from, usize::MAX - cell.from)).map(|cell| cell.line)
        }
        KeyCode::Left => number.checked_sub(1).map(|number| levels[level][number].line),
        KeyCode::Right => levels[level].get(number + 1).map(|cell| cell.line),
        KeyCode::Enter => {
            position.zoom = Some(table.lines[here.line].id.clone());
            Some(here.line)
        }
        KeyCode::Esc if position.zoom.is_some() => {
            let zoom = position.zoom.take();
            let zoom = table.lines.iter().find(|line| Some(&line.id) == zoom.as_ref());
            position.zoom = zoom.and_then(|line| line.parent).map(|parent| table.lines[parent].id.clone());
            Some(here.line)
        }
        _ => return false,
    };
    position.at = Some(table.lines[to.unwrap_or(here.line)].id.clone());
    true
}

/// The table line of the call under the cursor.
pub(super) fn line_at(table: &ViewTable, position: &Position, width: usize) -> Option<usize> {
    let levels = levels(table, position, width);
    let (level, number) = cursor(&levels, table, position);
    levels.get(level).and_then(|cells| cells.get(number)).map(|cell| cell.line)
}

/// The drawn lines, and the text about the call under the cursor. `wanted`: the searched text, in
/// lower case.
pub(super) fn draw(
    table: &ViewTable,
    position: &mut Position,
    wanted: &str,
    size: (usize, usize),
    colours: bool,
) -> (Vec<Line<'static>>, Option<String>) {
    let (width, height) = size;
    let levels = levels(table, position, width);
    if levels.is_empty() || height == 0 {
        return (Vec::new(), None);
    }
    let (level, number) = cursor(&levels, table, position);
    position.top = position.top.min(level).max((level + 1).saturating_sub(height));
    let here = levels[level][number].line;
    let lines = levels.iter().skip(position.top).take(height);
    let lines = lines.map(|cells| row(cells, table, here, wanted, width, colours)).collect();
    let line = &table.lines[here];
    let place = if line.place.is_empty() { String::new() } else { format!("  {}", line.place) };
    let (total, own) = (table.percent(line.total), table.percent(line.own));
    (lines, Some(format!("{total}, itself {own}  {}{place}", line.name)))
}

fn row(
    cells: &[Cell],
    table: &ViewTable,
    here: usize,
    wanted: &str,
    width: usize,
    colours: bool,
) -> Line<'static> {
    let mut spans = Vec::new();
    let mut column = 0;
    for cell in cells {
        // Two cells may share a column if the earlier one was widened to be visible.
        let from = cell.from.max(column);
        if from >= cell.to.min(width) {
            continue;
        }
        spans.push(Span::raw(" ".repeat(from - column)));
        let line = &table.lines[cell.line];
        let room = cell.to - from;
        // Leave a gap between neighbours where it fits.
        let text = if room > 2 { room - 1 } else { room };
        let name = if text < 3 { " ".repeat(text) } else { shorten(&line.name, text).into_owned() };
        let name: String = name.chars().take(text).collect();
        let mut style = colour(&line.name, &line.place, colours);
        if !wanted.is_empty() && line.name.to_lowercase().contains(wanted) {
            style = Style::new().fg(Color::Black).bg(Color::Magenta).add_modifier(Modifier::BOLD);
        }
        if cell.line == here {
            style = style.add_modifier(Modifier::REVERSED | Modifier::BOLD);
        }
        spans.push(Span::styled(left(&name, text), style));
        spans.push(Span::raw(" ".repeat(room - text)));
        column = cell.to;
    }
    Line::from(spans)
}

/// One of a few warm colours, the same for the same file; the kernel has its own. Without colours frames are underlined, so that
/// they stand out from the empty space beside them.
fn colour(name: &str, place: &str, colours: bool) -> Style {
    if !colours {
        return Style::new().add_modifier(Modifier::UNDERLINED);
    }
    let background = match place {
        "[kernel.kallsyms]" => Color::Indexed(173),
        "" => Color::Indexed(250),
        place => {
            const WARM: [u8; 6] = [222, 215, 216, 186, 180, 223];
            let sum = place.bytes().fold(7usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
            Color::Indexed(WARM[(sum ^ (name.len() & 1)) % WARM.len()])
        }
    };
    Style::new().fg(Color::Black).bg(background)
}
