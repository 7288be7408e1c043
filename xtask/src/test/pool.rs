//! Runs suites side by side, as many as there are processors, each with one test at a time. As many tests run at once as with cargo, which runs the
//! suites one after another: there a processor has nothing to do while a suite's last test waits.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::build::Suite;
use super::lines::Tally;
use super::order;

/// A suite that runs for longer is killed: it hangs.
const LONGEST: Duration = Duration::from_secs(20 * 60);
/// More failed tests than these are not repeated: chance fails one or two.
const MOST_REPEATED: usize = 3;
/// How often running suites are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What all suites of a run have in common.
pub struct Pool<'a> {
    /// Directory for their output. Files, as a pipe would stay open with a process that a test left behind.
    pub output: &'a Path,
    /// File of skipped checks, which the crate `fixtures` writes.
    pub skips: &'a Path,
    /// Arguments of each suite.
    pub arguments: &'a [String],
}

/// A suite that runs.
struct Running {
    suite: Suite,
    child: Child,
    began: Instant,
}

impl Pool<'_> {
    /// Runs the suites, and prints the output of each when it has ended. Repeats a test that failed, alone: many compare samples with a clock, and
    /// other suites, or other machines on the same host, take the processor away from one now and then.
    pub fn run(&self, mut suites: Vec<Suite>, tally: &mut Tally) -> Result<()> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        order::sort(&mut suites);
        let mut waiting: VecDeque<Suite> = suites.into();
        let mut running: Vec<Running> = Vec::new();
        let mut failed: Vec<(Suite, String)> = Vec::new();
        while !waiting.is_empty() || !running.is_empty() {
            while let Some(next) = next(&waiting, &running, processors)
                && let Some(suite) = waiting.remove(next)
            {
                running.push(self.start(suite, processors)?);
            }
            std::thread::sleep(LOOK);
            let mut at = 0;
            while at < running.len() {
                match ended(&mut running[at])? {
                    Some(status) => failed.extend(self.finish(running.remove(at), status, tally)?),
                    None => at += 1,
                }
            }
        }
        if failed.len() <= MOST_REPEATED {
            failed.iter().try_for_each(|(suite, test)| self.repeat(suite, test, tally))?;
        }
        Ok(())
    }

    fn start(&self, suite: Suite, processors: usize) -> Result<Running> {
        let output = File::create(self.output_of(&suite)).context("the output of a suite")?;
        let threads = if order::is_alone(&suite) { processors } else { 1 };
        let mut command = self.command(&suite);
        command.arg(format!("--test-threads={threads}")).args(self.arguments);
        let child = command.stdout(output.try_clone()?).stderr(output).spawn();
        let child = child.with_context(|| suite.program.display().to_string())?;
        Ok(Running { suite, child, began: Instant::now() })
    }

    fn command(&self, suite: &Suite) -> Command {
        let mut command = Command::new(&suite.program);
        command.args(suite.selection());
        command.current_dir(&suite.directory).env("PLUMB_SKIPS", self.skips);
        command.env("CARGO_MANIFEST_DIR", &suite.directory).stdin(Stdio::null());
        command
    }

    /// Prints and counts a suite's results. Returns its failed tests.
    fn finish(
        &self,
        Running { suite, began, .. }: Running,
        status: ExitStatus,
        tally: &mut Tally,
    ) -> Result<Vec<(Suite, String)>> {
        let output = std::fs::read(self.output_of(&suite)).context("the output of a suite")?;
        let mut stdout = std::io::stdout();
        writeln!(stdout, "\n     Running {}", suite.name)?;
        stdout.write_all(&output)?;
        let (before, filtered) = (tally.failures.len(), tally.filtered);
        tally.add(&suite.name, &String::from_utf8_lossy(&output), began.elapsed(), status.success());
        // To a module's run, the tests of the other modules are filtered out.
        if !suite.tests.is_empty() {
            tally.filtered = filtered;
        }
        Ok(tally.failures[before..].iter().map(|(_, test)| (suite.clone(), test.clone())).collect())
    }

    /// Runs a failed test once more, with nothing beside it. A suite that died has no test of that name.
    fn repeat(&self, suite: &Suite, test: &str, tally: &mut Tally) -> Result<()> {
        let mut command = self.command(&Suite { tests: vec![test.to_owned()], ..suite.clone() });
        let output = command.output().with_context(|| suite.program.display().to_string())?;
        println!("\n     Repeating {}: {test}", suite.name);
        std::io::stdout().write_all(&output.stdout)?;
        std::io::stderr().write_all(&output.stderr)?;
        let has_run = String::from_utf8_lossy(&output.stdout).contains("test result: ok. 1 passed");
        if has_run && output.status.success() {
            tally.passes_alone(&suite.name, test);
        }
        Ok(())
    }

    /// The file that a suite's output goes to. Suites of two packages may have one name, their programs have not.
    fn output_of(&self, suite: &Suite) -> PathBuf {
        let program = suite.program.file_name().unwrap_or(OsStr::new("suite"));
        self.output.join(format!("{}-{}", program.display(), suite.name))
    }
}

/// Place of the next suite that may run beside those that run.
fn next(waiting: &VecDeque<Suite>, running: &[Running], processors: usize) -> Option<usize> {
    let idle = running.iter().filter(|other| order::is_waiting(&other.suite)).count();
    let has_room =
        |suite| if order::is_waiting(suite) { idle == 0 } else { running.len() - idle < processors };
    waiting.iter().position(|suite| {
        has_room(suite)
            && running.iter().all(|other| {
                !order::is_alone(suite)
                    && !order::is_alone(&other.suite)
                    && !order::exclude(&suite.name, &other.suite.name)
            })
    })
}

/// The status of a suite that has ended. One that hangs is killed.
fn ended(running: &mut Running) -> Result<Option<ExitStatus>> {
    if running.began.elapsed() > LONGEST {
        eprintln!("{} has run for {} minutes: it is killed", running.suite.name, LONGEST.as_secs() / 60);
        running.child.kill()?;
        return Ok(Some(running.child.wait()?));
    }
    Ok(running.child.try_wait()?)
}
