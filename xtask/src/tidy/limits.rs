//! How large things may be. Which may be larger, and why, is in `exceptions`.
//!
//! A limit says where one thing has become two.

use std::path::{Path, PathBuf};

use super::Finding;
use super::exceptions::{EXCEPTIONS, Exception};

/// What has a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Lines of a file without its tests.
    File,
    /// Lines of a function, from its name to its end.
    Function,
    /// Fields of a structure.
    Struct,
    /// Files of a crate of which each imports, in the end, each other.
    Circle,
}

impl Measure {
    /// The limit.
    pub fn most(self) -> usize {
        match self {
            Measure::File => 450,
            Measure::Function => 60,
            Measure::Struct => 15,
            Measure::Circle => 4,
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Measure::File | Measure::Function => "lines",
            Measure::Struct => "fields",
            Measure::Circle => "files that import each other",
        }
    }
}

/// How large something is.
#[derive(Debug, PartialEq)]
pub struct Measured {
    /// File, relative to the repository; of a circle the first one.
    pub file: PathBuf,
    /// Line, counted from 1; 0 if it is the file as a whole.
    pub line: usize,
    /// What was measured.
    pub measure: Measure,
    /// Name of the function or structure; of a circle its other files.
    pub name: String,
    /// How large it is.
    pub size: usize,
}

/// Findings about what is larger than it may be, and about exceptions that are not needed.
pub fn check(measured: Vec<Measured>) -> Vec<Finding> {
    check_against(EXCEPTIONS, measured)
}

fn check_against(exceptions: &[Exception], measured: Vec<Measured>) -> Vec<Finding> {
    let mut needed = vec![false; exceptions.len()];
    let mut findings = Vec::new();
    for one in measured.into_iter().filter(|one| one.size > one.measure.most()) {
        let index = exceptions.iter().position(|exception| one.is_excepted_by(exception));
        if let Some(index) = index {
            needed[index] = true;
        }
        let most = index.map_or(one.measure.most(), |index| exceptions[index].most);
        if one.size > most {
            findings.push(one.finding(most));
        }
    }
    let unneeded = exceptions.iter().zip(needed).filter(|(_, needed)| !needed);
    findings.extend(unneeded.map(|(exception, _)| Finding {
        file: PathBuf::from("xtask/src/tidy/limits.rs"),
        line: 0,
        what: format!(
            "the exception of {} {} is not needed any more ({})",
            exception.file, exception.name, exception.reason
        ),
    }));
    findings
}

impl Measured {
    fn is_excepted_by(&self, exception: &Exception) -> bool {
        let has_name = matches!(self.measure, Measure::Function | Measure::Struct);
        self.measure == exception.measure
            && Path::new(exception.file) == self.file
            && (!has_name || self.name == exception.name)
    }

    fn finding(self, most: usize) -> Finding {
        let Measured { file, line, measure, name, size } = self;
        let name = if name.is_empty() { name } else { format!("`{name}`: ") };
        Finding { file, line, what: format!("{name}{size} {}, at most {most}", measure.unit()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(size: usize) -> Measured {
        let (file, name) = (PathBuf::from("crates/x/src/y.rs"), "long".into());
        Measured { file, line: 7, measure: Measure::Function, name, size }
    }

    const LONG: [Exception; 1] = [Exception {
        measure: Measure::Function,
        file: "crates/x/src/y.rs",
        name: "long",
        most: 70,
        reason: "one table",
    }];

    #[test]
    fn what_is_too_large_is_found_unless_there_is_a_reason() {
        assert!(check_against(&[], vec![one(61)])[0].what.contains("`long`: 61 lines, at most 60"));
        assert!(check_against(&LONG, vec![one(70)]).is_empty());
        assert!(check_against(&LONG, vec![one(71)])[0].what.contains("at most 70"));
    }

    #[test]
    fn an_exception_that_nothing_needs_is_found() {
        assert!(check_against(&LONG, vec![])[0].what.contains("is not needed any more (one table)"));
    }

    #[test]
    fn each_exception_says_why() {
        assert!(EXCEPTIONS.iter().all(|exception| exception.reason.split(' ').count() > 4));
        assert!(EXCEPTIONS.iter().all(|exception| exception.most > exception.measure.most()));
    }
}
