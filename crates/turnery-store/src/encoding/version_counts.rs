//! Compares the versions and counts of a session with its loops.

use super::{checksum::ChecksumVerdict, survey::Survey};
use std::collections::HashSet;

/// Versions and counts according to the session's row, compared with its loops.
pub(crate) struct VersionCounts {
    head_version: u64,
    loop_count: u64,
    /// Greatest version of a loop.
    pub(crate) newest_version: u64,
    pub(crate) stored_loops: u64,
    /// Versions without a loop that no repair has recorded.
    pub(crate) lost_versions: Vec<u64>,
}

impl VersionCounts {
    /// `noted` are the versions without a loop that a repair has recorded.
    pub(crate) fn new(
        head_version: u64,
        loop_count: u64,
        noted: impl IntoIterator<Item = u64>,
        survey: &Survey,
    ) -> Self {
        let mut known: HashSet<u64> = survey.rows.iter().filter_map(|row| row.version).collect();
        let trusted = survey
            .rows
            .iter()
            .filter(|row| row.verdict != ChecksumVerdict::Differs);
        let newest = trusted
            .filter_map(|row| row.version)
            .max()
            .unwrap_or_default();
        known.extend(noted);
        // Limited, so that a damaged head does not produce billions of entries.
        let end = newest.max(head_version.min(newest.saturating_add(64)));
        let lost = (1..=end)
            .filter(|version| !known.contains(version))
            .take(64);
        Self {
            head_version,
            loop_count,
            newest_version: newest,
            stored_loops: survey.rows.len() as u64,
            lost_versions: lost.collect(),
        }
    }

    pub(crate) fn is_head_wrong(&self) -> bool {
        self.head_version < self.newest_version
    }

    /// Returns true if the count is too small. A greater count is valid: numbers are never reused.
    pub(crate) fn is_count_wrong(&self) -> bool {
        self.loop_count < self.stored_loops
    }

    /// Describes what is wrong, as predicates of a sentence about the session.
    pub(crate) fn problems(&self) -> impl Iterator<Item = String> {
        let head_version = self.is_head_wrong().then(|| {
            format!(
                "says that it is at version {}, and has a loop of version {}",
                self.head_version, self.newest_version
            )
        });
        let count = self.is_count_wrong().then(|| {
            format!(
                "counts {} loops, and has {}",
                self.loop_count, self.stored_loops
            )
        });
        let lost = (!self.lost_versions.is_empty()).then(|| {
            let versions: Vec<String> = self.lost_versions.iter().map(u64::to_string).collect();
            format!(
                "has lost what was committed as version {}",
                versions.join(", ")
            )
        });
        [head_version, count, lost].into_iter().flatten()
    }
}
