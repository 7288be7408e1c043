//! Running text with marked names, so that a terminal, Markdown and a page can format each their own way.

/// Running text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(pub Vec<Span>);

/// A piece of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// Ordinary words.
    Plain(String),
    /// A function, a file, a command: a name.
    Name(String),
}

impl Text {
    /// Appends words.
    pub fn and(mut self, text: impl Into<String>) -> Self {
        self.0.push(Span::Plain(text.into()));
        self
    }

    /// Appends a name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.0.push(Span::Name(name.into()));
        self
    }

    /// Appends another text.
    pub fn text(mut self, mut other: Text) -> Self {
        self.0.append(&mut other.0);
        self
    }

    /// Returns the text without markup.
    pub fn plain(&self) -> String {
        self.0
            .iter()
            .map(|span| match span {
                Span::Plain(text) | Span::Name(text) => &text[..],
            })
            .collect()
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Text::default().and(text)
    }
}
