//! Whether a text holds a byte, and where: asked of most of a page, so made for blocks that a processor compares at once.
//!
//! What a byte means is for the callers to say.

const BLOCK_BYTES: usize = 32;
const SMALL_BYTES: usize = 8;

/// Which of the marks that `mark` gives to the bytes there are, as bits.
#[inline]
pub(super) fn marks(bytes: &[u8], mark: impl Fn(u8) -> u8 + Copy) -> u8 {
    let all = |met: u8, block: &[u8]| block.iter().fold(met, |met, byte| met | mark(*byte));
    // The last block begins within the one before it: what is seen twice is there all the same.
    if let Some(last) = bytes.last_chunk::<BLOCK_BYTES>() {
        return bytes.chunks_exact(BLOCK_BYTES).fold(all(0, last), all);
    }
    if let Some(last) = bytes.last_chunk::<SMALL_BYTES>() {
        return bytes.chunks_exact(SMALL_BYTES).fold(all(0, last), all);
    }
    all(0, bytes)
}

const HIGHEST: u64 = each(0x80);

const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; SMALL_BYTES])
}

/// Where a byte stands in a text, from first to last.
#[inline]
pub(super) fn positions(bytes: &[u8], byte: u8) -> Positions<'_> {
    Positions { rest: bytes, next: 0, found: 0, sought: each(byte) }
}

/// See [`positions`].
pub(super) struct Positions<'a> {
    rest: &'a [u8],
    /// Where the rest begins.
    next: usize,
    /// The highest bit of each byte of the word before the rest that is the one and was not told; the first byte is the lowest.
    found: u64,
    sought: u64,
}

impl Iterator for Positions<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.found == 0 {
            let others = if let Some((word, rest)) = self.rest.split_first_chunk() {
                self.rest = rest;
                u64::from_le_bytes(*word) ^ self.sought
            } else if self.rest.is_empty() {
                return None;
            } else {
                // What fills the word up is not what is sought.
                let word = self.rest.iter().rev().fold(!self.sought, |word, byte| word << 8 | u64::from(*byte));
                self.rest = &[];
                word ^ self.sought
            };
            self.next += SMALL_BYTES;
            self.found = !(((others & !HIGHEST) + !HIGHEST) | others) & HIGHEST;
        }
        let at = self.next - SMALL_BYTES + self.found.trailing_zeros() as usize / 8;
        self.found &= self.found - 1;
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_byte_is_seen_in_every_place() {
        let mark = |byte| u8::from(byte == b':') | u8::from(byte > 0x7f) << 1;
        for length in 0..=100 {
            let mut bytes = vec![b'a'; length];
            assert_eq!(marks(&bytes, mark), 0);
            for at in 0..length {
                bytes[at] = b':';
                assert_eq!(marks(&bytes, mark), 1, "{at} of {length}");
                bytes[length - 1 - at] = 0xff;
                assert_eq!(marks(&bytes, mark), if length == 2 * at + 1 { 2 } else { 3 }, "{at} of {length}");
                bytes.fill(b'a');
            }
        }
    }
    proptest! {
        #[test]
        fn all_places_are_told_in_order(bytes in prop::collection::vec(prop::sample::select(b":;\x00\x3b\x80\xba\xff".to_vec()), 0..40)) {
            for byte in [b':', 0, 0x80, 0xff] {
                let expected: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == byte).collect();
                prop_assert_eq!(positions(&bytes, byte).collect::<Vec<_>>(), expected);
            }
        }
    }
}
