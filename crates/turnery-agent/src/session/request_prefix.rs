//! Measures and identifies the fixed part of every request: the system prompt and the tools.

use sha2::{Digest, Sha256};
use turnery_engine::compaction::estimate_text_tokens;
use turnery_tools::Toolbox;

/// Fixed part of every request of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestPrefix {
    /// Size. Unit: tokens.
    pub(crate) tokens: u64,
    /// Hash of the system prompt.
    pub(crate) system_hash: String,
    /// Hash of the names, descriptions and schemas of the tools.
    pub(crate) tools_hash: String,
}

impl RequestPrefix {
    pub(crate) fn new(toolbox: &Toolbox, system: &str) -> Self {
        let mut tools_hash = Sha256::new();
        let mut tokens = estimate_text_tokens(system);
        for spec in toolbox.specs().iter() {
            for part in [&*spec.name, &*spec.description, spec.schema.as_json()] {
                tokens += estimate_text_tokens(part);
                tools_hash.update(part.len().to_le_bytes());
                tools_hash.update(part);
            }
        }
        Self {
            tokens,
            system_hash: short_hex(&Sha256::digest(system)),
            tools_hash: short_hex(&tools_hash.finalize()),
        }
    }
}

/// Returns the first 16 hexadecimal digits of a hash.
fn short_hex(hash: &[u8]) -> String {
    hash.iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash of a text is that of other programs: `printf 'be good' | sha256sum`.
    #[test]
    fn hashes_are_the_start_of_sha256() {
        let prefix = RequestPrefix::new(&Toolbox::new(Vec::new()), "be good");
        assert_eq!(prefix.system_hash, "b92ea8b341999534");
        assert_eq!(prefix.tools_hash, "e3b0c44298fc1c14");
    }
}
