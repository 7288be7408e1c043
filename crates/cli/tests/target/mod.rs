//! A program that tests look at.

use std::process::Child;

/// Killed at the end.
pub struct Target(pub Child);

impl Target {
    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
