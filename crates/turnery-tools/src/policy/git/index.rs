//! Reads which submodules a repository's index holds.

use std::{
    fs,
    io::ErrorKind,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
};

/// Larger files are not looked into. Unit: bytes.
const LARGEST: u64 = 128 << 20;

/// Paths of all gitlinks, from the work tree's top; `None` if the index is not understood (it is split or sparse).
pub(super) fn gitlinks(index: &Path, sha256: bool) -> Option<Vec<PathBuf>> {
    match index.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Some(Vec::new()),
        Ok(found) if found.is_file() && found.len() <= LARGEST => {}
        Ok(_) | Err(_) => return None,
    }
    parse(&fs::read(index).ok()?, if sha256 { 32 } else { 20 })
}

fn parse(index: &[u8], hash: usize) -> Option<Vec<PathBuf>> {
    let mut rest = Bytes(index);
    if rest.take(4)? != b"DIRC" {
        return None;
    }
    let version = rest.number()?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let count = rest.number()?;
    let mut found = Vec::new();
    let mut path: Vec<u8> = Vec::new();
    for _ in 0..count {
        let start = rest.0.len();
        rest.take(24)?;
        let mode = rest.number()?;
        rest.take(12 + hash)?;
        let flags = rest.take(2)?;
        if flags.first()? & 0x40 != 0 {
            rest.take(2)?;
        }
        if version == 4 {
            let kept = path.len().checked_sub(rest.varint()?)?;
            path.truncate(kept);
        } else {
            path.clear();
        }
        path.extend_from_slice(rest.until_nul()?);
        if version != 4 {
            // Entries are padded with NULs to a multiple of eight bytes; one of them is taken already.
            let length = start.checked_sub(rest.0.len())?;
            rest.take(length.next_multiple_of(8) - length)?;
        }
        match mode {
            0o160_000 => found.push(PathBuf::from(std::ffi::OsStr::from_bytes(&path))),
            0o100_644 | 0o100_755 | 0o120_000 => {}
            _ => return None,
        }
    }
    while rest.0.len() > hash {
        let name = rest.take(4)?;
        // Extensions in small letters change what the entries mean.
        if !name.first()?.is_ascii_uppercase() {
            return None;
        }
        let size = rest.number()?;
        rest.take(usize::try_from(size).ok()?)?;
    }
    (rest.0.len() == hash).then_some(found)
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn until_nul(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(0, self.0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(text)
    }

    /// The variable-width number of pack files: each further byte adds one before it shifts.
    fn varint(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        loop {
            let byte = *self.take(1)?.first()?;
            value = value.checked_add(usize::from(byte & 0x7f))?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            value = value.checked_add(1)?.checked_mul(128)?;
        }
    }
}
