//! Clones the whole board of a game at each tried move; the fix plays the move, looks, and takes it back.
#[derive(Clone)]
struct Player {
    name: String,
    hand: Vec<u8>,
}

#[derive(Clone)]
struct Board {
    cells: Vec<Vec<u8>>,
    players: Vec<Player>,
}

impl Board {
    fn new() -> Board {
        let player = |name: &str| Player { name: name.to_string(), hand: (0..20).collect() };
        Board { cells: vec![vec![0; 12]; 12], players: vec![player("north wind"), player("south wind")] }
    }

    fn score(&self, row: usize, column: usize) -> i64 {
        let mut sum = 0i64;
        for r in row.saturating_sub(2)..(row + 3).min(12) {
            for c in column.saturating_sub(2)..(column + 3).min(12) {
                sum += i64::from(self.cells[r][c]) * (r as i64 - c as i64 + 7);
            }
        }
        sum + self.players[0].hand.len() as i64 + self.players[1].name.len() as i64
    }
}

#[inline(never)]
fn try_move(board: &mut Board, row: usize, column: usize, stone: u8) -> i64 {
    if cfg!(after) {
        let before = board.cells[row][column];
        board.cells[row][column] = stone;
        let score = board.score(row, column);
        board.cells[row][column] = before;
        return score;
    }
    let mut next = board.clone(); // SLOW
    next.cells[row][column] = stone;
    next.score(row, column)
}

fn main() {
    let mut board = Board::new();
    let mut total = 0i64;
    for turn in 0..30000u32 {
        let mut best = (i64::MIN, 0, 0);
        for row in 0..12 {
            for column in 0..12 {
                let score = try_move(&mut board, row, column, (turn % 5) as u8 + 1) ^ i64::from(turn & 31);
                best = best.max((score, row, column));
            }
        }
        board.cells[best.1][best.2] = (turn % 5) as u8;
        total += best.0;
    }
    eprintln!("{total}");
}
