//! A single-file page's data: the answers for one selection of some recordings, as bytes that the page reads instead of asking a server.
//!
//! One line of JSON has the length of each body that follows it, in order. The decoder is
//! web/src/api/packet.ts. Elsewhere: the page, and the encoding of these bytes in it (`cli`).

use serde_json::{Value, json};

use crate::answers::{AnswerError, LoadedRecording, NamedFiles, PATHS, Parameters, Question};

/// Version of this format. The page rejects others.
const FORMAT: u32 = 1;

/// The answers added so far.
#[derive(Debug)]
pub struct Packet {
    files: NamedFiles,
    bodies: Vec<Body>,
    lead: Vec<(&'static str, Value)>,
}

/// An answer, or the reason why there is none.
#[derive(Debug)]
struct Body {
    /// The path as in the URL after `/api/v1/recordings`.
    path: String,
    content: Result<Vec<u8>, String>,
}

impl Packet {
    /// Creates an empty packet. `files`: whether files that recordings name may be read.
    pub fn new(files: NamedFiles) -> Self {
        Self { files, bodies: Vec::new(), lead: Vec::new() }
    }

    /// Sets a field that the page reads before all answers.
    pub fn lead(&mut self, name: &'static str, value: impl Into<Value>) {
        self.lead.push((name, value.into()));
    }

    /// Adds an answer created elsewhere.
    pub fn put(&mut self, id: usize, path: &str, content: Vec<u8>) {
        self.bodies.push(Body { path: format!("/{id}{path}"), content: Ok(content) });
    }

    /// Adds a recording's answer for a path, with the parameters that the page adds to the path: the page looks it up by both.
    pub fn ask(
        &mut self,
        (recordings, id): (&[LoadedRecording], usize),
        path: &str,
        parameters: &Parameters,
        more: &[(&str, &str)],
    ) {
        let Some(recording) = recordings.get(id) else { return };
        let answer = PATHS.into_iter().find(|(known, _)| *known == path).map(|(_, answer)| answer);
        let parameters = more.iter().fold(parameters.clone(), |all, (name, value)| all.with(name, value));
        let asked = Question { recordings, recording, parameters: &parameters, named_files: self.files };
        let content = answer.map_or_else(
            || Err(AnswerError::NotFound(format!("there is no {path}"))),
            |answer| answer(&asked).map(|(_, body)| body),
        );
        let key = more.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
        let key = if key.is_empty() { key } else { format!("?{key}") };
        let content = content.map_err(|error| error.to_string());
        self.bodies.push(Body { path: format!("/{id}{path}{key}"), content });
    }

    /// Encodes the packet.
    ///
    /// # Errors
    /// The line can't be written as JSON.
    pub fn encode(self) -> Result<Vec<u8>, serde_json::Error> {
        let index: Vec<Value> = self
            .bodies
            .iter()
            .map(|body| match &body.content {
                Ok(content) => json!({"path": body.path, "bytes": content.len()}),
                Err(why) => json!({"path": body.path, "error": why}),
            })
            .collect();
        let mut head = json!({"format": FORMAT, "answers": index});
        for (name, value) in self.lead {
            head[name] = value;
        }
        let mut out = serde_json::to_vec(&head)?;
        // JSON escapes line ends, so the first line end is the head's.
        out.push(b'\n');
        self.bodies.into_iter().filter_map(|body| body.content.ok()).for_each(|body| out.extend(body));
        Ok(out)
    }
}
