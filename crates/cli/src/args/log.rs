//! Log lines on standard error, for commands that run until they are stopped.
//!
//! Elsewhere: the logged messages, which are `tracing` events.

/// Log format and level.
#[derive(clap::Args, Clone, Copy, Debug)]
#[group(skip)]
pub struct LogArgs {
    /// Log format on standard error
    #[arg(long, value_enum, default_value = "text")]
    log: LogFormat,
    /// Least severe messages to log
    #[arg(long, value_enum, value_name = "LEVEL", default_value = "info")]
    log_level: LogLevel,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LogFormat {
    /// For people
    Text,
    /// One object per line
    Json,
}

/// Least severe level that is logged.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LogLevel {
    /// Errors only
    Error,
    /// Warnings too
    Warn,
    /// Start, stop and summaries
    Info,
    /// Every request
    Debug,
}

impl LogArgs {
    /// The options as arguments for another command.
    #[cfg(all(feature = "agent", feature = "server"))]
    pub fn arguments(self) -> Vec<String> {
        use clap::ValueEnum;
        let word =
            |value: Option<clap::builder::PossibleValue>| value.map(|value| value.get_name().to_owned());
        let pairs = [
            ("--log", word(self.log.to_possible_value())),
            ("--log-level", word(self.log_level.to_possible_value())),
        ];
        pairs.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?])).flatten().collect()
    }

    /// Sets up logging for this process.
    pub fn init(self) {
        let level = match self.log_level {
            LogLevel::Error => tracing::Level::ERROR,
            LogLevel::Warn => tracing::Level::WARN,
            LogLevel::Info => tracing::Level::INFO,
            LogLevel::Debug => tracing::Level::DEBUG,
        };
        let lines = tracing_subscriber::fmt().with_max_level(level).with_target(false);
        // A log line that can't be written because the disk is full must not end the thread that logs.
        let lines = lines.with_ansi(false).with_writer(std::io::stderr).log_internal_errors(false);
        match self.log {
            LogFormat::Text => lines.init(),
            LogFormat::Json => lines.json().init(),
        }
    }
}
