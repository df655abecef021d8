//! Records the lines of both directions as they arrive, so that they can be replayed against other faults.

use crate::faults::Direction;
use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

/// Lines that one proxy process read from both sides, before any fault, in the order in which it handled
/// them.
pub type Recording = Vec<(Direction, Vec<u8>)>;

/// Writer of one recording.
pub(super) struct Recorder(File);

impl Recorder {
    /// Creates a new file in this folder.
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let name = format!("{:020}-{}", now.as_nanos(), std::process::id());
        Ok(Self(File::create_new(folder.join(name))?))
    }

    pub(super) fn record_line(&mut self, direction: Direction, line: &[u8]) -> io::Result<()> {
        let mark = match direction {
            Direction::ToAgent => b'>',
            Direction::ToClient => b'<',
        };
        let mut entry = vec![mark];
        entry.extend_from_slice(&(line.len() as u64).to_be_bytes());
        entry.extend_from_slice(line);
        self.0.write_all(&entry)
    }
}

/// Reads all recordings of a folder, one per process, oldest first. A truncated last line is left out.
///
/// # Errors
/// If the folder cannot be read, or holds other files.
pub fn read_recordings(folder: &Path) -> io::Result<Vec<Recording>> {
    let files: io::Result<Vec<_>> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    let mut files = files?;
    files.sort();
    files
        .iter()
        .map(|file| read_recording(&mut File::open(file)?))
        .collect()
}

fn read_recording(file: &mut impl Read) -> io::Result<Recording> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let mut lines = Vec::new();
    let mut rest = bytes.as_slice();
    while let Some((mark, after)) = rest.split_first() {
        let direction = match mark {
            b'>' => Direction::ToAgent,
            b'<' => Direction::ToClient,
            _ => return Err(io::Error::other("this is no recording")),
        };
        let Some((length, after)) = after.split_first_chunk::<8>() else {
            break;
        };
        let length = usize::try_from(u64::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let Some((line, after)) = after.split_at_checked(length) else {
            break;
        };
        lines.push((direction, line.to_vec()));
        rest = after;
    }
    Ok(lines)
}
