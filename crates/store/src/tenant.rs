//! Tenants: owners of profiles. A tenant cannot see the data of another.

use std::fmt;

use crate::error::StoreError;

/// Name of a tenant, which is also that of its directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(String);

impl Tenant {
    /// Longest name, in bytes.
    pub const LONGEST: usize = 64;

    /// Validates a name: letters, digits, `-`, `_` and `.`, not starting with a dot.
    pub fn new(name: &str) -> Result<Self, StoreError> {
        let is_part = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '.');
        let fits = (1..=Self::LONGEST).contains(&name.len());
        if fits && name.chars().all(is_part) && !name.starts_with('.') {
            return Ok(Self(name.to_owned()));
        }
        Err(StoreError::Tenant(name.chars().take(2 * Self::LONGEST).collect()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The tenant of profiles that are sent without one, as in Pyroscope.
impl Default for Tenant {
    fn default() -> Self {
        Self("anonymous".to_owned())
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_safe_folder() {
        for name in ["anonymous", "team-1", "a.b_c"] {
            assert!(Tenant::new(name).is_ok(), "{name}");
        }
        for name in ["", "..", ".hidden", "a/b", "a b", "ä", "a\0", &"x".repeat(65)] {
            assert!(Tenant::new(name).is_err(), "{name}");
        }
    }
}
