//! A terminal for tests, with typed keys and a readable screen, provided by `script` (util-linux).

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

use plumb_fixtures::{Requirement, skip};

/// A terminal with its screen and input.
pub struct Terminal {
    script: Child,
    keys: ChildStdin,
    pub seen: Arc<Mutex<(vt100::Parser, Vec<u8>)>>,
}

impl Terminal {
    /// Runs a shell command line on a terminal of this size.
    pub fn run(folder: &Path, (rows, columns): (u16, u16), line: &str) -> Option<Self> {
        let line = format!("stty rows {rows} cols {columns}; stty -g; {line}; echo; stty -g; echo the end");
        let spawned = Command::new("script")
            .args(["-q", "-e", "-c", &line, "/dev/null"])
            .env("TERM", "xterm-256color")
            .env("SHELL", "/bin/sh")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut script) = spawned else {
            skip(Requirement::Script, "script (util-linux) is missing");
            return None;
        };
        let keys = script.stdin.take().expect("it is piped");
        let mut output = script.stdout.take().expect("it is piped");
        let seen = Arc::new(Mutex::new((vt100::Parser::new(rows, columns, 0), Vec::new())));
        let writer = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                let mut seen = writer.lock().expect("nobody panics with it");
                seen.0.process(&bytes[..length]);
                seen.1.extend_from_slice(&bytes[..length]);
            }
        });
        Some(Self { script, keys, seen })
    }

    pub fn screen(&self) -> String {
        self.seen.lock().expect("nobody panics with it").0.screen().contents()
    }

    pub fn all(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().expect("nobody panics with it").1).into_owned()
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).and_then(|()| self.keys.flush()).expect("the terminal is there");
    }

    /// Waits until the screen meets a condition.
    pub fn until(&mut self, is_so: impl Fn(&str) -> bool) -> String {
        let begin = std::time::Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            // No machine is that slow; an endless wait would never show the screen.
            assert!(begin.elapsed().as_secs() < 300, "it never came: {screen}");
            assert!(self.script.try_wait().expect("it can be asked").is_none(), "it ended: {}", self.all());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Closes the terminal.
    pub fn close(mut self) {
        self.script.kill().and_then(|()| self.script.wait()).expect("it can be ended");
    }

    /// Waits for the end: the terminal's modes before and after, and whether the first screen is back.
    pub fn end(mut self) -> (String, String) {
        self.script.wait().expect("it ends");
        while !self.all().contains("the end") {
            std::thread::yield_now();
        }
        let all = self.all();
        let modes: Vec<&str> = all
            .lines()
            .filter(|line| line.len() > 40 && line.trim().chars().all(|c| c == ':' || c.is_ascii_hexdigit()))
            .collect();
        assert_eq!(modes.len(), 2, "{all:?}");
        let seen = self.seen.lock().expect("nobody panics with it");
        assert!(!seen.0.screen().alternate_screen() && !seen.0.screen().hide_cursor(), "{all:?}");
        (modes[0].trim().to_owned(), modes[1].trim().to_owned())
    }
}

impl Drop for Terminal {
    /// Ends the processes of a failed test: without its terminal, top exits as well.
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.script.kill().and_then(|()| self.script.wait());
    }
}
