//! Options for access to a server: its token, and the certificates to verify it by.

use std::path::PathBuf;

/// Access to a server.
#[derive(clap::Args, Debug, Default)]
pub struct AccessArgs {
    /// File that holds a token
    ///
    /// Without it, the variable PLUMB_TOKEN_FILE may name one.
    #[arg(long, value_name = "FILE")]
    pub token: Option<PathBuf>,
    /// Certificates (PEM) to verify the server by, if no public authority has signed its own
    ///
    /// Replaces the certificates of public authorities. Without it, the variable PLUMB_CA_CERT may name the file.
    #[arg(long, value_name = "FILE")]
    pub ca_cert: Option<PathBuf>,
}

impl AccessArgs {
    /// The token file: the one given, or that of the environment variable.
    pub fn token(&self) -> Option<PathBuf> {
        self.token.clone().or_else(|| variable("PLUMB_TOKEN_FILE"))
    }

    /// The file with certificates: the one given, or that of the environment variable.
    pub fn ca_cert(&self) -> Option<PathBuf> {
        self.ca_cert.clone().or_else(|| variable("PLUMB_CA_CERT"))
    }
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
