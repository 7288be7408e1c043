//! Languages that have remedies of their own.

use serde::Deserialize;

use crate::frame::ViewFrame;

/// A language with its own remedies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::advice) enum Language {
    Go,
    Java,
    JavaScript,
    Rust,
}

impl Language {
    /// Returns the language of a function, from its source file or else from the binary that holds its code.
    pub fn of(frame: &ViewFrame<'_>) -> Option<Self> {
        let ending = |path: &str| path.rsplit_once('.').map(|(_, ending)| ending.to_owned());
        match ending(frame.file).unwrap_or_default().as_str() {
            "go" => return Some(Self::Go),
            "java" | "kt" | "scala" => return Some(Self::Java),
            "js" | "mjs" | "cjs" | "ts" => return Some(Self::JavaScript),
            "rs" => return Some(Self::Rust),
            _ => {}
        }
        match frame.dso_path.rsplit('/').next().unwrap_or_default() {
            "node" | "deno" | "bun" => Some(Self::JavaScript),
            name if name.starts_with("libnode.so") => Some(Self::JavaScript),
            name if name.starts_with("libjvm.so") => Some(Self::Java),
            _ => None,
        }
    }
}
