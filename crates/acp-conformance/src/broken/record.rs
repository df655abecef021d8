//! record: what passed, written down line by line, so that it can be shown to other faults.

use crate::faults::Way;
use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

/// The lines of one process, in the order in which they passed.
pub type Recording = Vec<(Way, Vec<u8>)>;

/// Writes them down.
pub(super) struct Recorder(File);

impl Recorder {
    /// A file of its own in this folder.
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let name = format!("{:020}-{}", now.as_nanos(), std::process::id());
        Ok(Self(File::create_new(folder.join(name))?))
    }

    pub(super) fn line(&mut self, way: Way, line: &[u8]) -> io::Result<()> {
        let mark = match way {
            Way::ToAgent => b'>',
            Way::ToClient => b'<',
        };
        let mut entry = vec![mark];
        entry.extend_from_slice(&(line.len() as u64).to_be_bytes());
        entry.extend_from_slice(line);
        self.0.write_all(&entry)
    }
}

/// All that was recorded in a folder, process by process, the oldest first.
///
/// # Errors
/// The folder cannot be read, or holds something else. A last line that was cut off is left out.
pub fn recordings(folder: &Path) -> io::Result<Vec<Recording>> {
    let files: io::Result<Vec<_>> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    let mut files = files?;
    files.sort();
    files
        .iter()
        .map(|file| recording(&mut File::open(file)?))
        .collect()
}

fn recording(file: &mut impl Read) -> io::Result<Recording> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let mut lines = Vec::new();
    let mut rest = bytes.as_slice();
    while let Some((mark, after)) = rest.split_first() {
        let way = match mark {
            b'>' => Way::ToAgent,
            b'<' => Way::ToClient,
            _ => return Err(io::Error::other("this is no recording")),
        };
        let Some((length, after)) = after.split_first_chunk::<8>() else {
            break;
        };
        let length = usize::try_from(u64::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let Some((line, after)) = after.split_at_checked(length) else {
            break;
        };
        lines.push((way, line.to_vec()));
        rest = after;
    }
    Ok(lines)
}
