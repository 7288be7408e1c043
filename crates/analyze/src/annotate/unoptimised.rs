//! Whether a compiler made code without optimising it, told from the code.

use iced_x86::Register;

use super::class::Place;
use super::listing::Listing;

/// From this share of instructions on that access the frame.
const LEAST_IN_FRAME: f64 = 0.2;
/// Functions with fewer instructions tell nothing.
const LEAST_INSTRUCTIONS: usize = 6;
/// These keep their values in calls: an optimiser keeps variables in them before it puts any into the frame. (gcc uses rbx without
/// optimising too.)
const KEPT: [Register; 4] = [Register::R12, Register::R13, Register::R14, Register::R15];

impl Listing {
    /// Whether variables live in the frame though registers are free for them, as they do where nothing was optimised: a fifth of the
    /// instructions access the frame, and none of the registers that survive calls is used.
    ///
    /// That holds for 87% of what gcc 12 makes of C++ by -O0 and for 84% of what rustc 1.95 makes for debugging; by -Og and -O1 to -O3 for 0
    /// to 3% of the functions of programs and libraries, and for 7% of those of glibc. So single functions don't tell; most of a file's
    /// hot code does.
    pub fn is_unoptimised(&self) -> bool {
        let instructions = self.instructions();
        let in_frame = instructions.iter().filter(|one| one.class.place == Some(Place::Stack)).count();
        instructions.len() >= LEAST_INSTRUCTIONS
            && in_frame as f64 >= LEAST_IN_FRAME * instructions.len() as f64
            && !self.uses(&KEPT)
    }

    /// Whether any instruction names one of these registers, or a part of it.
    fn uses(&self, registers: &[Register]) -> bool {
        self.decoded().iter().any(|instruction| {
            let operands = (0..instruction.op_count()).map(|operand| instruction.op_register(operand));
            let mut named = operands.chain([instruction.memory_base(), instruction.memory_index()]);
            named.any(|register| registers.contains(&register.full_register()))
        })
    }
}
