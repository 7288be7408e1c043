//! Differences between recordings: rows of two sides compared, and which of them differ significantly.
//!
//! A side is one recording or several of the same work. Rows are matched even if the program was rebuilt. Each row's difference has
//! a confidence interval and a p value, corrected over all rows, so that two recordings of the same program show no differences.
//!
//! Elsewhere: text, colours, files.

mod change;
mod fdr;
mod flame;
mod functions;
mod moved;
mod name;
mod options;
mod rows;
mod speed;
mod student;
mod sum;
mod windows;

pub use change::{Change, Evidence, Mark, Visibility};
pub use flame::{DiffBox, DiffFlame};
pub use functions::DiffFunction;
pub use moved::Moved;
pub use options::{By, DiffOptions, Per};
pub use rows::Subject;
pub use windows::{LEAST_WINDOWS, WindowChange, WindowSums, dearer, origin};

use change::{Comparing, Draft, Run};
use functions::Functions;
use rows::{Rows, Spot};
use speed::Speed;
use sum::Sum;

use crate::frame::Kind;
use crate::kernel::Cause;
use crate::view::View;

/// A row of the comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffRow {
    /// Subject of the row.
    pub subject: Subject,
    /// Change of the row.
    pub change: Change,
    /// For a function: where it went, or came from.
    pub moved: Option<Moved>,
}

/// The comparison of two sides.
pub struct Diff<'a, 'p> {
    /// All functions of both sides.
    functions: Functions,
    /// The rows: first the significant changes, largest first; then the others, by cost.
    pub rows: Vec<DiffRow>,
    /// The change of the total.
    pub whole: Change,
    /// The number and order of the recordings.
    pub evidence: Evidence,
    /// The options of the comparison.
    pub options: DiffOptions,
    sides: [&'a [View<'p>]; 2],
    runs: [Vec<Run>; 2],
    speed: Speed,
    /// Per view, the base's first.
    spots: Vec<Vec<(Spot, Sum)>>,
}

impl<'a, 'p> Diff<'a, 'p> {
    /// Compares views; each side has at least one. `name_of` maps system call numbers to names.
    pub fn new(
        base: &'a [View<'p>],
        new: &'a [View<'p>],
        options: DiffOptions,
        name_of: impl Fn(u32) -> Option<&'static str> + Copy,
    ) -> Self {
        let views: Vec<&View<'_>> = base.iter().chain(new).collect();
        let spots: Vec<Vec<(Spot, Sum)>> = views.iter().map(|view| rows::spots(view)).collect();
        let functions = Functions::new(&views, &spots, base.len());
        let rows = Rows::new(&views, &spots, &functions, options.by, options.children, name_of);
        let runs = [runs(&spots[..base.len()], options.per, 0), runs(&spots[base.len()..], options.per, 1)];
        let evidence = evidence(base, new);
        let speed = speed_of(&views, &spots, &functions, &runs);
        let whole = Comparing::new(&runs, evidence, &speed, &options).whole();
        let mut diff = Diff {
            functions,
            rows: Vec::new(),
            whole,
            evidence,
            options,
            sides: [base, new],
            runs,
            speed,
            spots,
        };
        let sums: Vec<[Vec<Sum>; 2]> = (0..rows.subjects.len())
            .map(|row| {
                let side = |sums: &[Vec<Sum>]| sums.iter().map(|sums| sums[row]).collect();
                [side(&rows.sums[..base.len()]), side(&rows.sums[base.len()..])]
            })
            .collect();
        let about: Vec<(bool, Option<u32>)> =
            rows.subjects.iter().map(|subject| (diff.is_kernel(subject), function_of(subject))).collect();
        let changes = diff.changes(&sums, &about);
        diff.rows = rows
            .subjects
            .into_iter()
            .zip(changes)
            .zip(&sums)
            .map(|((subject, change), [base, new])| {
                let is_function = matches!(subject, Subject::Function(_)) && !options.children;
                DiffRow { moved: if is_function { moved::known(base, new) } else { None }, subject, change }
            })
            .collect();
        diff.find_moved();
        diff.sort();
        diff
    }

    /// Returns all functions, indexed by number.
    pub fn functions(&self) -> &[DiffFunction] {
        &self.functions.names
    }

    /// Returns the change of the combined cost of the functions that `wanted` accepts, each sample counted once. q equals p: it is the only test.
    pub fn together(&self, wanted: impl Fn(&DiffFunction) -> bool) -> Change {
        let wanted: Vec<bool> = self.functions.names.iter().map(wanted).collect();
        let mut sums: Vec<Sum> = Vec::new();
        for (index, (view, spots)) in self.views().zip(&self.spots).enumerate() {
            let mut sum = Sum::default();
            for &((node, ..), cost) in spots {
                let mut functions =
                    rows::path(view, node, |frame| self.functions.of(index, frame)).into_iter().rev();
                let counts = if self.options.children { usize::MAX } else { 1 };
                if functions.by_ref().take(counts).any(|function| wanted[function as usize]) {
                    sum += cost;
                }
            }
            sums.push(sum);
        }
        let (base, new) = sums.split_at(self.sides[0].len());
        let comparing = self.comparing();
        let expected = self.speed.without(|function| wanted[function as usize]);
        let mut functions = self.functions.names.iter().zip(&wanted);
        let is_kernel = functions.any(|(function, wanted)| *wanted && function.kind == Kind::Kernel);
        let draft = comparing.draft([base, new], is_kernel, expected);
        let (p, p_share) = (draft.p(), draft.p_share());
        comparing.finish(draft, [p, p_share], [self.options.alpha; 2])
    }

    /// Returns how many times as long unchanged code takes in the new recordings, with the confidence interval.
    pub fn speed(&self) -> [f64; 3] {
        let expected = self.speed.beside(None);
        let half = student::exceeded(self.options.alpha, f64::INFINITY) * expected.variance.sqrt();
        [expected.ratio, expected.ratio * (-half).exp(), expected.ratio * half.exp()]
    }

    /// Whether either side has a function that `wanted` accepts.
    pub fn has_function(&self, wanted: impl Fn(&DiffFunction) -> bool) -> bool {
        self.functions.names.iter().any(wanted)
    }

    /// Whether a row is about kernel code.
    fn is_kernel(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Cause(cause, _) => *cause != Cause::User,
            _ => function_of(subject)
                .is_some_and(|number| self.functions.names[number as usize].kind == Kind::Kernel),
        }
    }

    fn views(&self) -> impl Iterator<Item = &'a View<'p>> + use<'a, 'p> {
        self.sides[0].iter().chain(self.sides[1])
    }

    fn comparing(&self) -> Comparing<'_> {
        Comparing::new(&self.runs, self.evidence, &self.speed, &self.options)
    }

    /// Returns the changes of rows with these sums in the recordings of each side, corrected over all of them. `about`: whether each is
    /// kernel code, and its function.
    fn changes(&self, sums: &[[Vec<Sum>; 2]], about: &[(bool, Option<u32>)]) -> Vec<Change> {
        let comparing = self.comparing();
        let draft = |([base, new], &(is_kernel, own)): (&[Vec<Sum>; 2], &(bool, Option<u32>))| {
            comparing.draft([base, new], is_kernel, self.speed.beside(own))
        };
        let drafts: Vec<Draft> = sums.iter().zip(about).map(draft).collect();
        let weights: Vec<f64> = drafts.iter().map(Draft::weight).collect();
        let whole: f64 = weights.iter().sum();
        let q = fdr::corrected(&drafts.iter().map(Draft::p).collect::<Vec<_>>(), &weights);
        let q_share = fdr::corrected(&drafts.iter().map(Draft::p_share).collect::<Vec<_>>(), &weights);
        // The level of all rows grows with the number of marked rows (Benjamini and Yekutieli 2005).
        let marked = q.iter().filter(|&&q| q <= self.options.alpha).count().max(1) as f64;
        let levels = weights.iter().map(|weight| self.options.alpha * weight / whole);
        drafts
            .into_iter()
            .zip(levels)
            .zip(q.into_iter().zip(q_share))
            .map(|((draft, level), (q, q_share))| {
                comparing.finish(draft, [q, q_share], [level, (level * marked).min(1.0)])
            })
            .collect()
    }

    /// Finds, for functions that vanished or are new, the caller that they were inlined into or split from.
    fn find_moved(&mut self) {
        let base = self.sides[0].len();
        for index in 0..self.rows.len() {
            let Subject::Function(function) = self.rows[index].subject else { continue };
            let mark = self.rows[index].change.mark(self.options.alpha);
            let caller = match mark {
                _ if self.options.children => None,
                Mark::Vanished => {
                    moved::caller(self.sides[0], &self.spots[..base], &self.functions, 0, function)
                }
                Mark::New => {
                    moved::caller(self.sides[1], &self.spots[base..], &self.functions, base, function)
                }
                _ => None,
            };
            let Some(caller) = caller.filter(|&caller| self.took_over(index, caller)) else { continue };
            self.rows[index].moved = Some(match mark {
                Mark::New => Moved::OutOfCaller(caller),
                _ => Moved::IntoCaller(caller),
            });
        }
    }

    /// Whether `caller` changed in the opposite direction by at least half of the row's change, and their sum did not change
    /// significantly.
    fn took_over(&self, row: usize, caller: u32) -> bool {
        let lost = self.rows[row].change.difference();
        let subject = Subject::Function(caller);
        let Some(taken) = self.rows.iter().find(|row| row.subject == subject) else { return false };
        let Subject::Function(function) = self.rows[row].subject else { return false };
        let pair = [function, caller].map(|number| &self.functions.names[number as usize]);
        let both = self.together(|name| pair.iter().any(|one| std::ptr::eq(*one, name)));
        taken.change.difference() * -lost.signum() >= lost.abs() / 2.0 && both.p > self.options.alpha
    }

    fn sort(&mut self) {
        let alpha = self.options.alpha;
        let functions = &self.functions.names;
        let name = |row: &DiffRow| match &row.subject {
            Subject::Function(number) | Subject::Line(number, ..) => functions[*number as usize].name.clone(),
            _ => String::new(),
        };
        let size = |row: &DiffRow| match row.change.mark(alpha) {
            Mark::Noise => (1, row.change.value[0].max(row.change.value[1])),
            _ => (0, row.change.difference().abs()),
        };
        self.rows.sort_by(|one, other| {
            let ((one_kind, one_size), (other_kind, other_size)) = (size(one), size(other));
            one_kind
                .cmp(&other_kind)
                .then(other_size.total_cmp(&one_size))
                .then_with(|| name(one).cmp(&name(other)))
                .then_with(|| one.subject.cmp(&other.subject))
        });
    }
}

/// Returns the function that a row is about, the innermost of a path.
fn function_of(subject: &Subject) -> Option<u32> {
    match subject {
        Subject::Function(number) | Subject::Line(number, ..) => Some(*number),
        Subject::Path(path) => path.last().copied(),
        Subject::Cause(..) => None,
    }
}

/// Estimates the speed of both sides from all functions.
fn speed_of(
    views: &[&View<'_>],
    spots: &[Vec<(Spot, Sum)>],
    functions: &Functions,
    runs: &[Vec<Run>; 2],
) -> Speed {
    let mut sums: Vec<Vec<Sum>> = vec![vec![Sum::default(); views.len()]; functions.names.len()];
    for (index, (view, spots)) in views.iter().zip(spots).enumerate() {
        for &((node, ..), sum) in spots {
            sums[functions.of(index, view.node(node).frame) as usize][index] += sum;
        }
    }
    let costs: Vec<speed::Cost> = (0..)
        .zip(sums)
        .zip(&functions.names)
        .filter(|(_, name)| name.kind != Kind::Marker)
        .map(|((number, sums), name)| {
            let (base, new) = sums.split_at(runs[0].len());
            (number, name.kind == Kind::Kernel, [base.to_vec(), new.to_vec()])
        })
        .collect();
    Speed::new(&costs, runs)
}

fn runs(spots: &[Vec<(Spot, Sum)>], per: Per, side: usize) -> Vec<Run> {
    spots
        .iter()
        .map(|spots| {
            let whole: Sum = spots.iter().map(|(_, sum)| sum).sum();
            let factor = match per {
                Per::Total => 1.0,
                Per::Second if whole.weight > 0.0 => 1e9 / whole.weight,
                Per::Second => 0.0,
                Per::Iteration(counts) => 1.0 / counts[side],
            };
            Run { whole, factor }
        })
        .collect()
}

/// Returns the order in which recordings were made, if all have a start time.
fn evidence(base: &[View<'_>], new: &[View<'_>]) -> Evidence {
    if base.len() < 2 && new.len() < 2 {
        return Evidence::Single;
    }
    let start = |side: bool| move |view: &View<'_>| (view.profile().meta.start_unix_ns, side);
    let mut starts: Vec<(u64, bool)> =
        base.iter().map(start(false)).chain(new.iter().map(start(true))).collect();
    starts.sort_unstable();
    let is_known = starts.iter().all(|&(start, _)| start > 0);
    let changes = starts.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    // A B B A A B changes sides as often as a side has recordings; A A A B B B once.
    if is_known && changes >= base.len().min(new.len()).max(2) { Evidence::Turns } else { Evidence::Blocked }
}
