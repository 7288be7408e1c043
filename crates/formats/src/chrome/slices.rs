//! Nests the time slices of a thread.

/// A slice of time in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slice {
    pub begin: f64,
    pub end: f64,
    /// Index of its name.
    pub name: usize,
}

/// Slices, and begin and end events, in order of arrival.
#[derive(Default)]
pub(super) struct Slices {
    complete: Vec<Slice>,
    /// Time, and the name for a begin event; `None` for an end event.
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

    /// Returns all slices sorted by start, each within the one that it began in; and the number of those that were not nested, or lacked an end
    /// or a begin.
    pub fn nested(mut self) -> (Vec<Slice>, u64) {
        let mut problems = 0;
        // A stable sort: events of the same time keep their order.
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
