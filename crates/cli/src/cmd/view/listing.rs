//! Full-screen text: another command's output, or the error.

use ansi_to_tui::IntoText;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

/// Lines shown above the hottest one.
const CONTEXT: usize = 10;

/// The step that follows a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Keep showing the listing.
    Stay,
    /// Return to the previous view.
    Back,
    /// Quit the program.
    Quit,
}

/// Scrollable text: its lines and the scroll position.
pub(super) struct Listing {
    lines: Vec<Line<'static>>,
    top: usize,
    /// Lines on the screen at the last drawing.
    page: usize,
}

impl Listing {
    /// Takes text with terminal colours. If lines begin with shares, scrolls to the largest.
    pub fn new(text: &[u8]) -> Self {
        let lines = text.into_text().map_or_else(
            // The text is not UTF-8.
            |_| String::from_utf8_lossy(text).lines().map(|line| Line::from(line.to_owned())).collect(),
            |text| text.lines,
        );
        let hottest = lines.iter().map(share).enumerate().max_by(|one, other| one.1.total_cmp(&other.1));
        let top =
            hottest.filter(|&(_, share)| share > 0.0).map_or(0, |(index, _)| index.saturating_sub(CONTEXT));
        Self { lines, top, page: 1 }
    }

    pub fn key(&mut self, key: KeyEvent) -> Then {
        let last = self.lines.len().saturating_sub(self.page);
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Then::Quit,
            KeyCode::Char('q') | KeyCode::Esc | KeyCode::Left => return Then::Back,
            KeyCode::Up | KeyCode::Char('k') => self.top = self.top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.top = (self.top + 1).min(last),
            KeyCode::PageUp => self.top = self.top.saturating_sub(self.page),
            KeyCode::PageDown | KeyCode::Char(' ') => self.top = (self.top + self.page).min(last),
            KeyCode::Home | KeyCode::Char('g') => self.top = 0,
            KeyCode::End | KeyCode::Char('G') => self.top = last,
            _ => {}
        }
        Then::Stay
    }

    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        self.page = usize::from(area.height).saturating_sub(1).max(1);
        self.top = self.top.min(self.lines.len().saturating_sub(self.page));
        let shown: Vec<Line<'_>> = self.lines.iter().skip(self.top).take(self.page).cloned().collect();
        frame.render_widget(Paragraph::new(shown), area);
        let end = (self.top + self.page).min(self.lines.len());
        let text = format!("lines {}-{end} of {}  ↑ ↓ move  q Esc back", self.top + 1, self.lines.len());
        let bottom = Rect { y: area.bottom().saturating_sub(1), height: area.height.min(1), ..area };
        let style = Style::new().add_modifier(Modifier::REVERSED);
        frame.render_widget(Paragraph::new(Line::styled(text, style)), bottom);
    }
}

/// The share at the start of a line, in percent; 0 without one.
fn share(line: &Line<'_>) -> f64 {
    let mut words = line.spans.iter().flat_map(|span| span.content.split_whitespace());
    words.next().and_then(|word| word.strip_suffix('%')?.parse().ok()).unwrap_or(0.0)
}
