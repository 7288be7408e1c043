//! `plumb serve` as a process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A server in a directory, stopped when dropped.
pub struct Serving {
    pub child: Child,
    pub url: String,
}

impl Serving {
    pub fn start(folder: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--store", "store", "--no-agent"])
            .args(options)
            .current_dir(folder);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("plumb starts");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let first = lines.next().expect("it says where it listens").expect("it is text");
        let url = first.split_once("listening on ").expect("it says where it listens").1.to_owned();
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
