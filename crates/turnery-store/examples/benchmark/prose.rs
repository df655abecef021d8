//! Makes texts.

/// Source of texts whose words are as unevenly frequent as in prose.
pub(crate) struct Prose(pub(crate) u64);

impl Prose {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn text(&mut self, words: u64) -> String {
        let mut text = String::new();
        for _ in 0..words {
            // Each group of words is as frequent as the one of half its size.
            let group = self.next() % 16;
            let word = self.next() % (1 << group);
            text.push_str(&format!("w{group:x}{word:x} "));
        }
        text
    }
}
