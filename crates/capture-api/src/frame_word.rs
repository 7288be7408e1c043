//! A frame as the program in the kernel writes it.

/// An address, and for a user frame in the four highest bits, which no user address has, how it was found. Kernel addresses have no marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FrameWord(u64);

impl FrameWord {
    /// Set if the address is not a return address.
    pub const NO_RETURN: u64 = 1 << 63;
    /// Set for an interpreter's evaluation loop that has script frames.
    pub const LOOP: u64 = 1 << 62;
    /// Set if the frame was found by scanning the stack.
    pub const SCANNED: u64 = 1 << 61;
    /// Set if the frame was found by the frame-pointer convention.
    pub const ASSUMED: u64 = 1 << 60;
    const MARKS: u64 = Self::NO_RETURN | Self::LOOP | Self::SCANNED | Self::ASSUMED;

    /// The frame of a word from the kernel.
    pub const fn new(word: u64) -> Self {
        Self(word)
    }

    /// The word itself: the address of a kernel frame.
    pub fn word(self) -> u64 {
        self.0
    }

    /// The address of a user frame.
    pub fn address(self) -> u64 {
        self.0 & !Self::MARKS
    }

    /// For a return address, an address in its call; otherwise the address itself.
    pub fn call(self) -> u64 {
        self.address().wrapping_sub(self.is_return().into())
    }

    /// Whether the address of a user frame is a return address.
    pub fn is_return(self) -> bool {
        self.0 & Self::NO_RETURN == 0
    }

    /// Whether a user frame is an evaluation loop with script frames.
    pub fn is_loop(self) -> bool {
        self.0 & Self::LOOP != 0
    }

    /// Whether a user frame was found by scanning the stack.
    pub fn is_scanned(self) -> bool {
        self.0 & Self::SCANNED != 0
    }

    /// Whether a user frame was found by the frame-pointer convention.
    pub fn is_assumed(self) -> bool {
        self.0 & Self::ASSUMED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_means_one_thing_and_the_address_stays() {
        let address = 0x7fff_ffff_f000_u64;
        for (mark, expected) in [
            (0, [true, false, false, false]),
            (FrameWord::NO_RETURN, [false, false, false, false]),
            (FrameWord::LOOP, [true, true, false, false]),
            (FrameWord::SCANNED, [true, false, true, false]),
            (FrameWord::ASSUMED, [true, false, false, true]),
        ] {
            let frame = FrameWord::new(address | mark);
            assert_eq!(frame.address(), address);
            assert_eq!(frame.call(), address - u64::from(expected[0]));
            assert_eq!(
                [frame.is_return(), frame.is_loop(), frame.is_scanned(), frame.is_assumed()],
                expected,
                "{mark:#x}"
            );
        }
    }
}
