//! A single-file page's data: the answers for one selection of some recordings, as bytes that the page reads instead of asking a server.
//!
//! One line of JSON has the length of each body that follows it, in order. The decoder is
//! web/src/api/packet.ts. Elsewhere: the page, and the encoding of these bytes in it (`cli`).

use serde::Serialize;

use crate::answers::{AnswerError, LoadedRecording, NamedFiles, PATHS, Parameters, Question, RecordingEntry};

/// Version of this format. The page rejects others.
const FORMAT: u32 = 1;

/// Facts that the page reads before all answers.
#[derive(Serialize)]
pub struct PacketLead {
    /// Version of plumb.
    pub plumb: &'static str,
    /// The recordings.
    pub recordings: Vec<RecordingEntry>,
    /// The view on which the page opens.
    pub view: String,
    /// Title of the page, if it is not the name of a recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// The first line.
#[derive(Serialize)]
struct Head<'a> {
    format: u32,
    answers: Vec<Entry<'a>>,
    #[serde(flatten)]
    lead: &'a PacketLead,
}

/// A body that follows the first line, or why there is none.
#[derive(Serialize)]
struct Entry<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl<'a> Entry<'a> {
    fn of(body: &'a Body) -> Self {
        let content = body.content.as_ref();
        Self { path: &body.path, bytes: content.ok().map(Vec::len), error: content.err().map(String::as_str) }
    }
}

/// The answers added so far.
pub struct Packet {
    files: NamedFiles,
    bodies: Vec<Body>,
    /// Facts that the page reads first.
    pub lead: PacketLead,
}

/// An answer, or the reason why there is none.
struct Body {
    /// The path as in the URL after `/api/v1/recordings`.
    path: String,
    content: Result<Vec<u8>, String>,
}

impl Packet {
    /// Creates an empty packet. `files`: whether files that recordings name may be read.
    pub fn new(lead: PacketLead, files: NamedFiles) -> Self {
        Self { files, bodies: Vec::new(), lead }
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
        let answers = self.bodies.iter().map(Entry::of).collect();
        let head = Head { format: FORMAT, answers, lead: &self.lead };
        let mut out = serde_json::to_vec(&serde_json::to_value(&head)?)?;
        // JSON escapes line ends, so the first line end is the head's.
        out.push(b'\n');
        self.bodies.into_iter().filter_map(|body| body.content.ok()).for_each(|body| out.extend(body));
        Ok(out)
    }
}
