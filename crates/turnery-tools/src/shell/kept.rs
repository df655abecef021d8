//! Kept: the beginning and the end of what a command printed; the middle is counted and forgotten.

use super::plain::Plain;

/// Bytes kept from the beginning.
const HEAD: usize = 12 * 1024;
/// Bytes kept from the end: that is where errors and summaries are.
const TAIL: usize = 18 * 1024;

/// Output, bounded.
#[derive(Debug, Default)]
pub(super) struct Kept {
    head: Vec<u8>,
    /// Up to twice what is kept, so that dropping the front costs little.
    tail: Vec<u8>,
    forgotten: u64,
}

impl Kept {
    /// How much is kept at most.
    pub(super) const LIMIT: usize = HEAD + TAIL;

    /// The next bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let (to_head, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
        self.head.extend_from_slice(to_head);
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * TAIL {
            self.forget(self.tail.len() - TAIL);
        }
    }

    /// As text, with a note where something is left out.
    pub(super) fn into_text(mut self) -> String {
        if self.tail.len() > TAIL {
            self.forget(self.tail.len() - TAIL);
        }
        if self.forgotten == 0 {
            self.head.append(&mut self.tail);
            return Plain::whole(&self.head);
        }
        // Cut at the ends of lines where there are some, so that no character and no line is torn.
        if let Some(end) = self.head.iter().rposition(|byte| *byte == b'\n') {
            self.forgotten += (self.head.len() - end - 1) as u64;
            self.head.truncate(end + 1);
        }
        let is_begin = |byte: &u8| byte & 0xc0 != 0x80;
        let begin = match self.tail.iter().position(|byte| *byte == b'\n') {
            Some(end) if end + 1 < self.tail.len() => end + 1,
            Some(_) | None => self.tail.iter().position(is_begin).unwrap_or(0),
        };
        self.forget(begin);
        let mut text = Plain::whole(&self.head);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&left_out(Some(self.forgotten)));
        text.push_str(&Plain::whole(&self.tail));
        text
    }

    fn forget(&mut self, count: usize) {
        self.tail.drain(..count);
        self.forgotten += count as u64;
    }
}

/// The note that stands for what is left out.
pub(super) fn left_out(bytes: Option<u64>) -> String {
    let what = bytes.map_or("output".to_owned(), |bytes| format!("{bytes} bytes"));
    format!(
        "[{what} left out here. To see it, narrow the command: grep for what matters, or print a part with head, tail or sed -n]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_kept_whole() {
        let mut kept = Kept::default();
        kept.add(b"a\nb");
        kept.add(&[b'x'; Kept::LIMIT - 3]);
        let text = kept.into_text();
        assert_eq!(text, format!("a\nb{}", "x".repeat(Kept::LIMIT - 3)));
    }

    #[test]
    fn the_middle_is_left_out_at_line_ends() {
        let mut kept = Kept::default();
        // 8 bytes a line, 800 000 bytes.
        for number in 0..100_000 {
            kept.add(format!("{number:07}\n").as_bytes());
        }
        let text = kept.into_text();
        // 12 288 bytes are lines 0 to 1535; of the last 18 432 the first line is dropped.
        let note = "[769288 bytes left out here. To see it, narrow the command: grep for what matters, or print a part with head, tail or sed -n]";
        assert!(text.starts_with("0000000\n0000001\n"));
        assert!(
            text.contains(&format!("0001535\n{note}\n0097697\n")),
            "{text}"
        );
        assert!(text.ends_with("0099999\n"));
    }

    #[test]
    fn one_endless_line_is_cut_between_characters() {
        let mut kept = Kept::default();
        kept.add("\u{e9}".repeat(100_000).as_bytes());
        kept.add(b"!");
        let text = kept.into_text();
        assert!(!text.contains('\u{fffd}'));
        assert!(text.starts_with("\u{e9}\u{e9}") && text.ends_with("\u{e9}!"));
        assert!(text.len() <= Kept::LIMIT + 200);
    }
}
