//! Reads which files and submodules a repository's index holds.

use std::{
    fs,
    io::ErrorKind,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

/// Maximum size of an index; larger files are not read. Unit: bytes.
const MAX_INDEX_BYTES: u64 = 128 << 20;
/// Maximum length of all paths together. In version 4 each may repeat most of the one before. Unit: bytes.
const MAX_PATH_BYTES: usize = 128 << 20;
/// Mode of a submodule in the index.
const GITLINK_MODE: u32 = 0o160_000;
/// Length recorded for names that are too long for the field.
const MAX_NAME_LENGTH: u16 = 0xfff;

/// Returns the paths of all submodules, relative to the work tree; `None` if the index is not understood (for
/// example split or sparse).
pub(super) fn read_gitlinks(index: &Path, sha256: bool) -> Option<Vec<PathBuf>> {
    read_paths(index, sha256, |mode| mode == GITLINK_MODE)
}

/// Returns all tracked paths, relative to the work tree; `None` if the index is not understood.
pub(super) fn read_tracked_paths(index: &Path, sha256: bool) -> Option<Vec<PathBuf>> {
    read_paths(index, sha256, |_| true)
}

fn read_paths(index: &Path, sha256: bool, is_wanted: fn(u32) -> bool) -> Option<Vec<PathBuf>> {
    match index.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Some(Vec::new()),
        Ok(found) if found.is_file() && found.len() <= MAX_INDEX_BYTES => {}
        Ok(_) | Err(_) => return None,
    }
    let hash = if sha256 { 32 } else { 20 };
    parse_index(&fs::read(index).ok()?, hash, is_wanted)
}

fn parse_index(index: &[u8], hash: usize, is_wanted: fn(u32) -> bool) -> Option<Vec<PathBuf>> {
    let mut rest = ByteReader(index);
    if rest.take_bytes(4)? != b"DIRC" {
        return None;
    }
    let version = rest.read_u32()?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let count = rest.read_u32()?;
    let mut found = Vec::new();
    // Offset of each entry from the start of the file, and whether it can be read first because its name is
    // not prefix-compressed.
    let mut entry_starts: Vec<(usize, bool)> = Vec::new();
    let mut path: Vec<u8> = Vec::new();
    let mut path_budget = MAX_PATH_BYTES;
    for _ in 0..count {
        let start = rest.0.len();
        rest.take_bytes(24)?;
        let mode = rest.read_u32()?;
        rest.take_bytes(12 + hash)?;
        let flags = rest.take_bytes(2)?;
        let length = usize::from(u16::from_be_bytes(flags.try_into().ok()?) & MAX_NAME_LENGTH);
        if flags.first()? & 0x40 != 0 {
            rest.take_bytes(2)?;
        }
        if version == 4 {
            let kept = path.len().checked_sub(rest.read_varint()?)?;
            path.truncate(kept);
        } else {
            path.clear();
        }
        entry_starts.push((index.len() - start, path.is_empty()));
        path.extend_from_slice(rest.read_until_nul()?);
        path_budget = path_budget.checked_sub(path.len())?;
        // Git uses the recorded length unless the name is too long for it.
        if length != path.len().min(usize::from(MAX_NAME_LENGTH)) {
            return None;
        }
        if version != 4 {
            // Entries are padded with NULs to a multiple of eight bytes; one NUL is read already.
            let length = start.checked_sub(rest.0.len())?;
            rest.take_bytes(length.next_multiple_of(8) - length)?;
        }
        if !path.split(|byte| *byte == b'/').all(is_valid_component) {
            return None;
        }
        if !matches!(mode, GITLINK_MODE | 0o100_644 | 0o100_755 | 0o120_000) {
            return None;
        }
        if is_wanted(mode) {
            found.push(PathBuf::from(std::ffi::OsStr::from_bytes(&path)));
        }
    }
    let end = index.len() - rest.0.len();
    // Git looks for the end-of-entries extension at a fixed offset, whatever surrounds it.
    let eoie_offset = index.len().checked_sub(hash + 12 + hash);
    let mut is_hidden = eoie_offset
        .and_then(|at| index.get(at..at + 4))
        .is_some_and(|name| name == b"EOIE");
    while rest.0.len() > hash {
        is_hidden &= Some(index.len() - rest.0.len()) != eoie_offset;
        let name = rest.take_bytes(4)?;
        // Extensions with lowercase names change the meaning of the entries.
        if !name.first()?.is_ascii_uppercase() {
            return None;
        }
        let size = rest.read_u32()?;
        let body = rest.take_bytes(usize::try_from(size).ok()?)?;
        // With these extensions, git's threads start reading at several offsets at once.
        let leads_to_what_was_read = match name {
            b"EOIE" => ByteReader(body).read_u32()? as usize == end,
            b"IEOT" => offsets_cover_entries(ByteReader(body), &entry_starts)?,
            _ => true,
        };
        if !leads_to_what_was_read {
            return None;
        }
    }
    (rest.0.len() == hash && !is_hidden).then_some(found)
}

/// Checks one component of a name: git writes none that leads out of the work tree or into `.git`.
fn is_valid_component(part: &[u8]) -> bool {
    !matches!(part, b"" | b"." | b"..") && !part.eq_ignore_ascii_case(b".git")
}

/// Returns true if the blocks of the offset table cover all entries in order.
fn offsets_cover_entries(
    mut table: ByteReader<'_>,
    entry_starts: &[(usize, bool)],
) -> Option<bool> {
    table.read_u32()?;
    let mut next = 0_usize;
    while !table.0.is_empty() {
        let offset = usize::try_from(table.read_u32()?).ok()?;
        let count = usize::try_from(table.read_u32()?).ok()?;
        if count > 0 && entry_starts.get(next) != Some(&(offset, true)) {
            return Some(false);
        }
        next = next.checked_add(count)?;
    }
    Some(next == entry_starts.len())
}

struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    fn take_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn read_u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take_bytes(4)?.try_into().ok()?))
    }

    fn read_until_nul(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(0, self.0)?;
        let text = self.take_bytes(end)?;
        self.take_bytes(1)?;
        Some(text)
    }

    /// Reads a variable-width number as in pack files: each further byte adds one before the shift.
    fn read_varint(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        loop {
            let byte = *self.take_bytes(1)?.first()?;
            value = value.checked_add(usize::from(byte & 0x7f))?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            value = value.checked_add(1)?.checked_mul(128)?;
        }
    }
}

#[cfg(test)]
mod differential_tests;

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds an index of version 2 with two files and these extensions.
    fn build_index(extensions: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
        let mut bytes = b"DIRC\0\0\0\x02\0\0\0\x02".to_vec();
        for name in [b"a", b"b"] {
            bytes.extend([0; 24]);
            bytes.extend(0o100_644_u32.to_be_bytes());
            bytes.extend([0; 32]);
            bytes.extend([0, 1]);
            bytes.extend(name);
            bytes.push(0);
        }
        for (name, body) in extensions {
            bytes.extend(*name);
            bytes.extend(u32::try_from(body.len()).unwrap().to_be_bytes());
            bytes.extend(body);
        }
        bytes.extend([0; 20]);
        bytes
    }

    fn encode_u32s(numbers: &[u32]) -> Vec<u8> {
        numbers
            .iter()
            .flat_map(|number| number.to_be_bytes())
            .collect()
    }

    #[test]
    fn extension_offsets_must_match_entries() {
        let is_read = |extensions: &[(&[u8; 4], Vec<u8>)]| {
            parse_index(&build_index(extensions), 20, |_| true).is_some()
        };
        assert!(is_read(&[]));
        // Entries of 64 bytes begin at 12 and 76 and end at 140.
        assert!(is_read(&[(b"IEOT", encode_u32s(&[1, 12, 1, 76, 1]))]));
        assert!(is_read(&[(b"IEOT", encode_u32s(&[1, 12, 2]))]));
        assert!(is_read(&[(b"EOIE", encode_u32s(&[140, 0, 0, 0, 0, 0]))]));
        for table in [
            &[1, 12, 1, 148, 1][..],
            &[1, 12, 1],
            &[1, 76, 1, 12, 1],
            &[1, 12, 3],
        ] {
            assert!(!is_read(&[(b"IEOT", encode_u32s(table))]), "{table:?}");
        }
        assert!(!is_read(&[(b"EOIE", encode_u32s(&[148, 0, 0, 0, 0, 0]))]));
        // An extension of another name contains it at the offset where git looks.
        let mut body = b"EOIE".to_vec();
        body.extend(encode_u32s(&[24, 140, 0, 0, 0, 0, 0]));
        assert!(!is_read(&[(b"TREE", body.clone())]));
        body.push(0);
        assert!(is_read(&[(b"TREE", body)]));
    }
}
