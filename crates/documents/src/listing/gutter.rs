//! The gutter of a listing: arrows from jumps to their targets.
//!
//! Each jump has a lane, the shortest nearest to the code, as long as lanes last; jumps to one target share an arrow head.

use plumb_analyze::Listing;

/// Most lanes drawn.
const LANES: usize = 8;

/// A jump within a function, by indices of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// The jump instruction.
    pub from: usize,
    /// Target of the jump.
    pub to: usize,
    /// Lane number; 0 is nearest to the code.
    pub lane: usize,
}

/// The jumps of a function, assigned to lanes.
#[derive(Debug, Default)]
pub struct Gutter {
    /// The drawn jumps.
    pub jumps: Vec<Jump>,
    /// Number of jumps without a lane.
    pub left_out: usize,
    /// Number of lanes.
    pub lanes: usize,
}

impl Gutter {
    /// Lays out the jumps for which `is_wanted` holds.
    pub fn new(listing: &Listing, is_wanted: impl Fn(usize, usize) -> bool) -> Self {
        let all = (0..listing.instructions().len()).filter_map(|from| Some((from, listing.jump(from)?)));
        let mut wanted: Vec<(usize, usize)> = all.filter(|&(from, to)| is_wanted(from, to)).collect();
        wanted.sort_by_key(|&(from, to)| (from.abs_diff(to), from));
        let mut gutter = Gutter::default();
        for (from, to) in wanted {
            let (first, last) = (from.min(to), from.max(to));
            let is_free = |lane: &usize| {
                gutter.jumps.iter().filter(|jump| jump.lane == *lane).all(|jump| {
                    let (start, end) = (jump.from.min(jump.to), jump.from.max(jump.to));
                    last < start || end < first || jump.to == to && jump.from != from
                })
            };
            match (0..LANES).find(is_free) {
                Some(lane) => {
                    gutter.lanes = gutter.lanes.max(lane + 1);
                    gutter.jumps.push(Jump { from, to, lane });
                }
                None => gutter.left_out += 1,
            }
        }
        gutter
    }

    /// The gutter of instruction `row`, two characters per lane.
    pub fn at(&self, row: usize) -> String {
        self.draw(|jump| {
            let (first, last) = (jump.from.min(jump.to), jump.from.max(jump.to));
            match row {
                _ if row < first || row > last => Part::None,
                _ if row == jump.from && row == jump.to => Part::Both,
                _ if row == jump.to => Part::Head(row == first),
                _ if row == jump.from => Part::Tail(row == first),
                _ => Part::Line,
            }
        })
    }

    /// The gutter between instruction `row` and the one before.
    pub fn before(&self, row: usize) -> String {
        self.draw(|jump| {
            let (first, last) = (jump.from.min(jump.to), jump.from.max(jump.to));
            if first < row && row <= last { Part::Line } else { Part::None }
        })
    }

    /// Draws the lanes from the outermost to the nearest.
    fn draw(&self, part: impl Fn(&Jump) -> Part) -> String {
        let mut text = String::new();
        // Whether a horizontal line crosses the lanes that follow.
        let mut crossing = false;
        for lane in (0..self.lanes).rev() {
            let mut here = Part::None;
            for jump in self.jumps.iter().filter(|jump| jump.lane == lane) {
                here = here.with(part(jump));
            }
            let (first, ends) = here.shape();
            crossing |= ends;
            text.push(match (first, crossing) {
                (' ', true) => '─',
                ('│', true) => '┼',
                (first, _) => first,
            });
            text.push(if crossing { '─' } else { ' ' });
        }
        let is_target = self.jumps.iter().any(|jump| matches!(part(jump), Part::Head(_) | Part::Both));
        text.push(match (self.lanes, is_target, crossing) {
            (0, ..) => return String::new(),
            (_, true, _) => '▶',
            (_, _, true) => '─',
            _ => ' ',
        });
        text
    }
}

/// The part of a jump that is drawn in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    None,
    Line,
    /// Start of the jump; whether that is its first row.
    Tail(bool),
    /// Target of the jump.
    Head(bool),
    /// A jump to itself.
    Both,
}

impl Part {
    /// Combines two jumps that share a lane because they have the same target.
    fn with(self, other: Part) -> Part {
        match (self, other) {
            (Part::None, part) | (part, Part::None) => part,
            (Part::Head(a), Part::Head(b)) if a != b => Part::Both,
            (Part::Head(a), _) | (_, Part::Head(a)) => Part::Head(a),
            (part, _) => part,
        }
    }

    /// The character, and whether a horizontal line goes on to the code.
    fn shape(self) -> (char, bool) {
        match self {
            Part::None => (' ', false),
            Part::Line => ('│', false),
            Part::Tail(true) | Part::Head(true) => ('╭', true),
            Part::Tail(false) | Part::Head(false) => ('╰', true),
            Part::Both => ('├', true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_around_a_branch_has_two_lanes() {
        let jumps = vec![Jump { from: 1, to: 3, lane: 0 }, Jump { from: 4, to: 0, lane: 1 }];
        let gutter = Gutter { jumps, left_out: 0, lanes: 2 };
        let rows: Vec<String> = (0..5).map(|row| gutter.at(row)).collect();
        assert_eq!(rows, ["╭───▶", "│ ╭──", "│ │  ", "│ ╰─▶", "╰────"]);
        assert_eq!(gutter.before(0), "     ");
        assert_eq!(gutter.before(2), "│ │  ");
    }
}
