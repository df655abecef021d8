//! Encodes snapshots: a header with a checksum, names that the interpreter does not record, and its dump.
//!
//! Layout: [`MAGIC`], the CRC-32 of the rest (4 bytes, little-endian), the length of the names (likewise), the
//! names as JSON, the dump.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// First bytes of a snapshot, with the version of its layout.
const MAGIC: &[u8; 8] = b"TCODE\0\0\x01";
/// Bytes before the checked part.
const HEADER_BYTES: usize = MAGIC.len() + 4;

/// Names of host functions in the code of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FunctionNames {
    /// Names that the code has bound itself, so that they may no longer lead to the host.
    pub(crate) rebound: BTreeSet<String>,
    /// Names whose calls the code has awaited.
    pub(crate) awaited: BTreeSet<String>,
}

/// Encodes a snapshot.
///
/// # Errors
///
/// Returns a message if the names cannot be encoded.
pub(crate) fn encode_snapshot(names: &FunctionNames, dump: &[u8]) -> Result<Vec<u8>, String> {
    let names = serde_json::to_vec(names).map_err(|error| error.to_string())?;
    let names_length = u32::try_from(names.len()).map_err(|error| error.to_string())?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + 4 + names.len() + dump.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&names_length.to_le_bytes());
    bytes.extend_from_slice(&names);
    bytes.extend_from_slice(dump);
    let checksum = crc32fast::hash(&bytes[HEADER_BYTES..]);
    bytes[MAGIC.len()..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    Ok(bytes)
}

/// Decodes a snapshot into names and dump.
///
/// # Errors
///
/// Returns the reason if the bytes are not a snapshot of this version or are damaged.
pub(crate) fn decode_snapshot(bytes: &[u8]) -> Result<(FunctionNames, &[u8]), String> {
    let is_other = || "they were saved in another format".to_owned();
    let is_damaged = || "the saved data is damaged".to_owned();
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(is_other)?;
    let (checksum, rest) = rest.split_first_chunk::<4>().ok_or_else(is_damaged)?;
    if crc32fast::hash(rest) != u32::from_le_bytes(*checksum) {
        return Err(is_damaged());
    }
    let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(is_damaged)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| is_damaged())?;
    let (names, dump) = rest.split_at_checked(length).ok_or_else(is_damaged)?;
    let names = serde_json::from_slice(names).map_err(|_| is_damaged())?;
    Ok((names, dump))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshot_round_trips() {
        let names = FunctionNames {
            rebound: BTreeSet::from(["a".to_owned()]),
            awaited: BTreeSet::from(["b".to_owned()]),
        };
        let bytes = encode_snapshot(&names, b"dump").unwrap();
        assert_eq!(decode_snapshot(&bytes), Ok((names, &b"dump"[..])));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let bytes = encode_snapshot(&FunctionNames::default(), b"dump").unwrap();
        for index in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[index] ^= 0x10;
            assert!(decode_snapshot(&damaged).is_err(), "{index}");
            assert!(decode_snapshot(&bytes[..index]).is_err(), "{index}");
        }
    }
}
