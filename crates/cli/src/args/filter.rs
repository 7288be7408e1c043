//! The filter options of every command that reads profiles.

use anyhow::Result;
use plumb_analyze::{Filter, Selection, SelectionWord};
use plumb_documents::answers::Parameters;
use plumb_interpreters::language_names;
use plumb_profile::Profile;

use super::SymfsArgs;

/// Options that select a part of a profile.
#[derive(clap::Args, Clone, Debug, Default)]
#[group(skip)]
#[command(next_help_heading = "Filters (TEXT matches exactly, /TEXT/ is a regular expression)")]
pub struct FilterArgs {
    #[command(flatten)]
    pub samples: SampleFilterArgs,
    /// Only this interval, in seconds since the start: A-B, A- or -B
    ///
    /// `A-B@C-D` selects the part from C to D of each second of the wall clock, such as `@0.2-0.3`.
    #[arg(long, value_name = "A-B", allow_hyphen_values = true)]
    pub time: Option<String>,
    #[command(flatten)]
    pub symfs: SymfsArgs,
}

/// The filters without the interval.
#[derive(clap::Args, Clone, Debug, Default)]
#[group(skip)]
#[command(next_help_heading = "Filters (TEXT matches exactly, /TEXT/ is a regular expression)")]
pub struct SampleFilterArgs {
    /// Only threads with this name
    #[arg(long, value_name = "TEXT")]
    pub comm: Vec<String>,
    /// Only processes running this executable (path or file name)
    #[arg(long, value_name = "TEXT")]
    pub exe: Vec<String>,
    /// Only stacks with a frame in this file (path or file name)
    #[arg(long, value_name = "TEXT")]
    pub dso: Vec<String>,
    /// Only stacks with this function (with or without parameters)
    #[arg(long, value_name = "TEXT")]
    pub symbol: Vec<String>,
    /// Only these threads, by ID or name
    #[arg(long, alias = "thread", value_name = "TID|TEXT")]
    pub tid: Vec<String>,
    /// Only these processes
    #[arg(long, value_name = "PID,...", value_delimiter = ',')]
    pub pid: Vec<u32>,
    /// Only samples taken on these CPUs, such as 0,2-3
    #[arg(long, value_name = "LIST")]
    pub cpu: Option<String>,
    /// Only samples of this event
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,
    /// Only stacks with a matching frame
    #[arg(long, value_name = "REGEX")]
    pub focus: Vec<String>,
    /// Drop stacks with a matching frame
    #[arg(long, value_name = "REGEX")]
    pub ignore: Vec<String>,
    /// Remove matching frames; their callers get their time
    #[arg(long, value_name = "REGEX")]
    pub hide: Vec<String>,
    /// Only samples taken in kernel mode
    #[arg(long, conflicts_with = "user")]
    pub kernel: bool,
    /// Only samples taken in user mode
    #[arg(long)]
    pub user: bool,
    /// Leave out the idle task
    #[arg(long)]
    pub no_idle: bool,
    /// Leave out inlined functions
    #[arg(long)]
    pub no_inline: bool,
    /// Show the interpreter's own frames instead of the program's functions
    #[arg(long, help = native_help())]
    pub native: bool,
}

/// The help of `--native`.
pub fn native_help() -> String {
    format!("Show the interpreter's own frames instead of functions of {}", language_names())
}

impl SampleFilterArgs {
    /// The options as a selection.
    fn selection(&self) -> Selection {
        let mut selection = Selection::default();
        let mut texts = |word, values: &[String]| values.iter().for_each(|text| selection.add(word, text));
        texts(SelectionWord::Comm, &self.comm);
        texts(SelectionWord::Exe, &self.exe);
        texts(SelectionWord::Dso, &self.dso);
        texts(SelectionWord::Symbol, &self.symbol);
        texts(SelectionWord::Tid, &self.tid);
        texts(SelectionWord::Pid, &self.pid.iter().map(u32::to_string).collect::<Vec<_>>());
        texts(SelectionWord::Cpu, self.cpu.as_slice());
        texts(SelectionWord::Event, self.event.as_slice());
        texts(SelectionWord::Focus, &self.focus);
        texts(SelectionWord::Ignore, &self.ignore);
        texts(SelectionWord::Hide, &self.hide);
        for (word, set) in [
            (SelectionWord::Kernel, self.kernel),
            (SelectionWord::User, self.user),
            (SelectionWord::NoIdle, self.no_idle),
            (SelectionWord::NoInline, self.no_inline),
            (SelectionWord::Native, self.native),
        ] {
            if set {
                selection.add(word, "");
            }
        }
        selection
    }
}

impl FilterArgs {
    fn selection(&self) -> Selection {
        let mut selection = self.samples.selection();
        self.time.iter().for_each(|text| selection.add(SelectionWord::Time, text));
        selection
    }

    /// The filter, for all events together unless one was asked for.
    pub fn filter(&self, profile: &Profile) -> Result<Filter> {
        Ok(self.selection().filter(profile)?)
    }

    /// The options as they would be typed.
    pub fn typed(&self) -> String {
        self.selection().typed()
    }

    /// The options as query parameters for the page.
    pub fn parameters(&self) -> Parameters {
        self.selection().iter().map(|(word, text)| (word.name().to_owned(), text.to_owned())).collect()
    }

    /// One filter for each event that has samples (or only for the one asked for): weights of different events
    /// can't be added up. Never empty.
    pub fn filter_per_event(&self, profile: &Profile) -> Result<Vec<Filter>> {
        Ok(self.selection().filter_per_event(profile)?)
    }
}
