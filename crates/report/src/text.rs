//! Running text in which names are marked, so that a terminal, Markdown and a page each write them in their way.

/// Running text, in which names stand as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(pub Vec<Span>);

/// A piece of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// Words of the language.
    Plain(String),
    /// A function, a file, a command: something that is no word of the language.
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

    /// All of it as it is read.
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
