//! What a power cut may leave on a disk.
//!
//! Since the last flush of a file, each of its sectors of 512 bytes may have reached the disk in any of its states, in
//! any order and independently of the others; so may its size. Names that were created or removed since the last flush
//! of the folder may be there or not, each on its own. A sector is written as a whole, with all earlier changes of its
//! content.

use crate::{
    Random,
    disk::{FileId, LogEntry},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

/// Bytes that a disk writes atomically.
const SECTOR_BYTES: usize = 512;

/// Contents of the files on a disk, by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Image(BTreeMap<String, Vec<u8>>);

impl Image {
    /// Writes the files to a folder.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        self.0
            .iter()
            .try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes))
    }
}

/// State of a disk after the start of a log.
#[derive(Clone, Debug, Default)]
pub struct CrashState {
    files: Vec<FileState>,
    /// Names that are on the disk.
    names: BTreeMap<String, FileId>,
    /// Changes of names since the last flush of the folder: `None` removes a name.
    renames: Vec<(String, Option<FileId>)>,
}

#[derive(Clone, Debug, Default)]
struct FileState {
    /// Content as the program sees it.
    cached: Vec<u8>,
    /// Content that is on the disk.
    flushed: Vec<u8>,
    /// Sectors written since the last flush, with their states in order.
    dirty: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Sectors written before a failed flush, which the system takes for flushed.
    lost: BTreeMap<usize, Vec<Vec<u8>>>,
    /// Sizes since the last flush, in order.
    sizes: Vec<usize>,
    /// States before each cut since the last flush: the disk may not have it yet, and then has nothing written since.
    before_cuts: Vec<FileState>,
}

/// Number of choices of an image, each with the number of its options.
type Options = Vec<usize>;

impl CrashState {
    /// Applies an entry of the log.
    pub fn apply(&mut self, entry: &LogEntry) {
        match entry {
            LogEntry::Create(name, file) => {
                self.file(*file);
                self.renames.push((name.clone(), Some(*file)));
            }
            LogEntry::Remove(name) => self.renames.push((name.clone(), None)),
            LogEntry::Write(file, offset, bytes) => {
                let offset = usize::try_from(*offset).unwrap_or(usize::MAX);
                self.file(*file).write(offset, bytes);
            }
            LogEntry::Truncate(file, size) => {
                let size = usize::try_from(*size).unwrap_or(usize::MAX);
                self.file(*file).truncate(size);
            }
            LogEntry::Sync(file) => self.file(*file).flush(),
            LogEntry::FailedSync(file) => self.file(*file).drop_dirty(),
            LogEntry::SyncFolder => {
                for (name, file) in std::mem::take(&mut self.renames) {
                    rename(&mut self.names, name, file);
                }
            }
            LogEntry::Mark(_) => {}
        }
    }

    fn file(&mut self, file: FileId) -> &mut FileState {
        if self.files.len() <= file {
            self.files.resize_with(file + 1, FileState::default);
        }
        &mut self.files[file]
    }

    /// Returns images that a power cut may leave: all of them if there are at most `exhaustive`, otherwise the one
    /// without and the one with everything unflushed, and `samples` random ones.
    #[must_use]
    pub fn images(
        &self,
        exhaustive: usize,
        samples: usize,
        random: &mut Random,
    ) -> BTreeSet<Image> {
        let worlds = self.worlds();
        let images = worlds
            .iter()
            .flat_map(|world| world.images_with_cuts(exhaustive, samples, random));
        images.collect()
    }

    /// Returns a state for each choice of the cuts of files that have reached the disk.
    fn worlds(&self) -> Vec<Self> {
        let mut worlds = vec![self.clone()];
        for (file, state) in self.files.iter().enumerate() {
            let mut earlier = Vec::new();
            for before in &state.before_cuts {
                for world in &worlds {
                    let mut world = world.clone();
                    world.files[file].clone_from(before);
                    earlier.push(world);
                }
            }
            worlds.extend(earlier);
        }
        worlds
    }

    fn images_with_cuts(
        &self,
        exhaustive: usize,
        samples: usize,
        random: &mut Random,
    ) -> BTreeSet<Image> {
        let options = self.options();
        let count = options.iter().try_fold(1_usize, |count, it| {
            count.checked_mul(*it).filter(|count| *count <= exhaustive)
        });
        if let Some(count) = count {
            return (0..count)
                .map(|number| self.image(&mut digits(number, &options).into_iter()))
                .collect();
        }
        let least = options.iter().map(|_| 0);
        let most = options.iter().map(|count| count - 1);
        let mut images = BTreeSet::from([self.image(&mut { least }), self.image(&mut { most })]);
        for sample in 0..samples {
            // Some samples keep most, others little: a log is torn early or late.
            let percent = [50, 90, 10][sample % 3];
            let choice = options
                .iter()
                .map(|count| match random.below(100) < percent {
                    true => count - 1,
                    false => random.below(*count),
                });
            images.insert(self.image(&mut choice.collect::<Vec<_>>().into_iter()));
        }
        images
    }

    /// Returns true if everything is on the disk.
    #[must_use]
    pub fn is_flushed(&self) -> bool {
        let is_cut = |file: &FileState| !file.before_cuts.is_empty();
        self.options().iter().all(|count| *count == 1) && !self.files.iter().any(is_cut)
    }

    /// Returns the options in the order in which `image` asks for them.
    fn options(&self) -> Options {
        let names = self.renames.iter().map(|_| 2);
        let files = self.files.iter().flat_map(FileState::options);
        names.chain(files).collect()
    }

    fn image(&self, choices: &mut dyn Iterator<Item = usize>) -> Image {
        let mut choose = || choices.next().unwrap_or_default();
        let mut names = self.names.clone();
        for (name, file) in &self.renames {
            if choose() == 1 {
                rename(&mut names, name.clone(), *file);
            }
        }
        let contents: Vec<Vec<u8>> = self
            .files
            .iter()
            .map(|file| file.content(&mut choose))
            .collect();
        let named = names.into_iter().filter_map(|(name, file)| {
            let content = contents.get(file)?;
            Some((name, content.clone()))
        });
        Image(named.collect())
    }
}

fn rename(names: &mut BTreeMap<String, FileId>, name: String, file: Option<FileId>) {
    match file {
        Some(file) => names.insert(name, file),
        None => names.remove(&name),
    };
}

/// Returns the digits of a number with a base for each of them.
fn digits(mut number: usize, bases: &[usize]) -> Vec<usize> {
    let mut next = |base: &usize| {
        let digit = number % base;
        number /= base;
        digit
    };
    bases.iter().map(&mut next).collect()
}

impl FileState {
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if self.cached.len() < end {
            self.cached.resize(end, 0);
            self.sizes.push(end);
        }
        self.cached[offset..end].copy_from_slice(bytes);
        self.touch(offset, end);
    }

    fn truncate(&mut self, size: usize) {
        if size >= self.cached.len() {
            self.cached.resize(size, 0);
            self.sizes.push(size);
            return;
        }
        let mut before = self.clone();
        self.before_cuts.append(&mut before.before_cuts);
        self.before_cuts.push(before);
        self.cached.truncate(size);
        self.flushed.resize(size, 0);
        self.sizes.clear();
        for sectors in [&mut self.dirty, &mut self.lost] {
            sectors.retain(|sector, _| sector * SECTOR_BYTES < size);
            if let Some(states) = sectors.get_mut(&(size / SECTOR_BYTES)) {
                for state in states {
                    state[size % SECTOR_BYTES..].fill(0);
                }
            }
        }
    }

    /// Adds the new state of the sectors with these bytes.
    fn touch(&mut self, start: usize, end: usize) {
        for sector in start / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
            let state = sector_of(&self.cached, sector);
            let lost = self.lost.remove(&sector).unwrap_or_default();
            let states = self.dirty.entry(sector).or_insert(lost);
            states.push(state);
        }
    }

    fn flush(&mut self) {
        for sector in std::mem::take(&mut self.dirty).into_keys() {
            put_sector(&mut self.flushed, sector, &sector_of(&self.cached, sector));
        }
        self.sizes.clear();
        self.before_cuts.clear();
        self.flushed.resize(self.cached.len(), 0);
    }

    fn drop_dirty(&mut self) {
        for (sector, states) in std::mem::take(&mut self.dirty) {
            self.lost.entry(sector).or_default().extend(states);
        }
    }

    fn options(&self) -> impl Iterator<Item = usize> {
        let size = (!self.sizes.is_empty()).then(|| self.sizes.len() + 1);
        let sectors = self.dirty.values().chain(self.lost.values());
        size.into_iter()
            .chain(sectors.map(|states| states.len() + 1))
    }

    fn content(&self, choose: &mut impl FnMut() -> usize) -> Vec<u8> {
        let mut content = self.flushed.clone();
        let mut size = content.len();
        if !self.sizes.is_empty()
            && let Some(chosen) = choose().checked_sub(1)
        {
            size = self.sizes[chosen];
        }
        for (sector, states) in self.dirty.iter().chain(&self.lost) {
            if let Some(chosen) = choose().checked_sub(1) {
                put_sector(&mut content, *sector, &states[chosen]);
            }
        }
        content.resize(size, 0);
        content
    }
}

fn sector_of(content: &[u8], sector: usize) -> Vec<u8> {
    let start = sector * SECTOR_BYTES;
    let end = (start + SECTOR_BYTES).min(content.len());
    let mut bytes = content.get(start..end).unwrap_or_default().to_vec();
    bytes.resize(SECTOR_BYTES, 0);
    bytes
}

fn put_sector(content: &mut Vec<u8>, sector: usize, bytes: &[u8]) {
    let start = sector * SECTOR_BYTES;
    if content.len() < start + SECTOR_BYTES {
        content.resize(start + SECTOR_BYTES, 0);
    }
    content[start..start + SECTOR_BYTES].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(log: &[LogEntry]) -> CrashState {
        let mut state = CrashState::default();
        log.iter().for_each(|entry| state.apply(entry));
        state
    }

    fn all(log: &[LogEntry]) -> BTreeSet<Image> {
        state(log).images(10_000, 0, &mut Random::new(1))
    }

    fn image(files: &[(&str, &[u8])]) -> Image {
        let files = files.iter();
        Image(
            files
                .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()))
                .collect(),
        )
    }

    /// A file `a` with two sectors of ones, on the disk.
    fn old_file() -> Vec<LogEntry> {
        vec![
            LogEntry::Create("a".into(), 0),
            LogEntry::Write(0, 0, vec![1; 1024]),
            LogEntry::Sync(0),
            LogEntry::SyncFolder,
        ]
    }

    #[test]
    fn flushed_file_has_one_image() {
        assert!(state(&old_file()).is_flushed());
        assert_eq!(
            all(&old_file()),
            BTreeSet::from([image(&[("a", &[1; 1024])])])
        );
    }

    #[test]
    fn unflushed_write_tears_at_sectors() {
        let mut log = old_file();
        log.push(LogEntry::Write(0, 256, vec![2; 512]));
        let torn = |first: u8, second: u8| {
            let mut bytes = vec![1; 1024];
            bytes[256..512].fill(first);
            bytes[512..768].fill(second);
            image(&[("a", &bytes)])
        };
        let expected = [torn(1, 1), torn(1, 2), torn(2, 1), torn(2, 2)];
        assert_eq!(all(&log), BTreeSet::from(expected));
    }

    #[test]
    fn sector_passes_through_its_states() {
        let mut log = old_file();
        log.push(LogEntry::Write(0, 0, vec![2; 1]));
        log.push(LogEntry::Write(0, 1, vec![3; 1]));
        let starts = |a: u8, b: u8| {
            let mut bytes = vec![1; 1024];
            bytes[..2].copy_from_slice(&[a, b]);
            image(&[("a", &bytes)])
        };
        let expected = [starts(1, 1), starts(2, 1), starts(2, 3)];
        assert_eq!(all(&log), BTreeSet::from(expected));
    }

    #[test]
    fn unflushed_size_may_be_kept_without_its_bytes() {
        let log = [
            LogEntry::Create("a".into(), 0),
            LogEntry::SyncFolder,
            LogEntry::Write(0, 0, vec![5; 3]),
        ];
        let expected: [&[u8]; 3] = [&[], &[0; 3], &[5; 3]];
        let expected = expected.map(|bytes| image(&[("a", bytes)]));
        assert_eq!(all(&log), BTreeSet::from(expected));
    }

    #[test]
    fn unflushed_cut_is_there_or_not() {
        let mut log = old_file();
        log.push(LogEntry::Truncate(0, 0));
        log.push(LogEntry::Write(0, 0, vec![2; 512]));
        let expected: [&[u8]; 4] = [&[1; 1024], &[], &[0; 512], &[2; 512]];
        let expected = expected.map(|bytes| image(&[("a", bytes)]));
        assert_eq!(all(&log), BTreeSet::from(expected));
    }

    #[test]
    fn unflushed_names_come_and_go_on_their_own() {
        let mut log = old_file();
        log.push(LogEntry::Remove("a".into()));
        log.push(LogEntry::Create("b".into(), 1));
        let old: (&str, &[u8]) = ("a", &[1; 1024]);
        let expected = [
            image(&[old]),
            image(&[]),
            image(&[old, ("b", &[])]),
            image(&[("b", &[])]),
        ];
        assert_eq!(all(&log), BTreeSet::from(expected));
    }

    #[test]
    fn failed_flush_is_not_made_good_by_the_next() {
        let mut log = old_file();
        log.extend([
            LogEntry::Write(0, 0, vec![2; 512]),
            LogEntry::FailedSync(0),
            LogEntry::Sync(0),
        ]);
        let mut lost = vec![2; 1024];
        lost[512..].fill(1);
        let expected = [image(&[("a", &[1; 1024])]), image(&[("a", &lost)])];
        assert_eq!(all(&log), BTreeSet::from(expected));
        log.extend([LogEntry::Write(0, 0, vec![2; 512]), LogEntry::Sync(0)]);
        assert_eq!(all(&log), BTreeSet::from([image(&[("a", &lost)])]));
    }

    #[test]
    fn samples_include_the_least_and_the_most() {
        let mut log = old_file();
        log.push(LogEntry::Write(0, 0, vec![2; 1024]));
        let images = state(&log).images(1, 0, &mut Random::new(1));
        let expected = [image(&[("a", &[1; 1024])]), image(&[("a", &[2; 1024])])];
        assert_eq!(images, BTreeSet::from(expected));
    }
}
