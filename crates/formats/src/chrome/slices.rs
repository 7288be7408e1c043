//! The slices of time of a thread, put into each other.

/// A slice of time in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slice {
    pub begin: f64,
    pub end: f64,
    /// Number of its name.
    pub name: usize,
}

/// Slices and the events that begin and end some, as they come.
#[derive(Default)]
pub(super) struct Slices {
    complete: Vec<Slice>,
    /// Time and name of a beginning; no name: an end.
    edges: Vec<(f64, Option<usize>)>,
}

impl Slices {
    pub fn begin(&mut self, time: f64, name: usize) {
        self.edges.push((time, Some(name)));
    }

    pub fn end(&mut self, time: f64) {
        self.edges.push((time, None));
    }

    pub fn complete(&mut self, begin: f64, duration: f64, name: usize) {
        self.complete.push(Slice { begin, end: begin + duration.max(0.0), name });
    }

    /// All slices in the order of their beginning, each within the one that it began in; and how many were not so, or had only a beginning
    /// or an end.
    pub fn nested(mut self) -> (Vec<Slice>, u64) {
        let mut problems = 0;
        // Stable: events of the same time stay in their order.
        self.edges.sort_by(|one, other| one.0.total_cmp(&other.0));
        let last = self.edges.last().map_or(0.0, |edge| edge.0);
        let mut slices = self.complete;
        let mut open: Vec<usize> = Vec::new();
        for (time, name) in self.edges {
            match (name, open.pop()) {
                (Some(name), innermost) => {
                    open.extend(innermost);
                    open.push(slices.len());
                    slices.push(Slice { begin: time, end: last, name });
                }
                (None, Some(slice)) => slices[slice].end = time,
                (None, None) => problems += 1,
            }
        }
        problems += open.len() as u64;
        slices.sort_by(|one, other| {
            one.begin.total_cmp(&other.begin).then_with(|| other.end.total_cmp(&one.end))
        });
        let mut ends: Vec<f64> = Vec::new();
        for slice in &mut slices {
            while ends.last().is_some_and(|&end| end <= slice.begin) {
                ends.pop();
            }
            if let Some(&outer) = ends.last().filter(|&&outer| slice.end > outer) {
                slice.end = outer;
                problems += 1;
            }
            ends.push(slice.end);
        }
        (slices, problems)
    }
}
