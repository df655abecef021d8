//! Defines what an answered write of a store survives.

/// What a write survives once it is answered. Setting `durability` of the configuration.
///
/// In both cases a write is atomic, other processes see it, and it survives the end of this process. After a power
/// cut, the store has every write up to some moment and none after it: never a part of a write, and never a later
/// write without the earlier ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The end of this process. Nobody waits for the disk: commits, creations and deletions are flushed right after
    /// their answer, all other writes with the next of these, or at the next checkpoint. A power cut may undo what was
    /// answered since the last flush.
    #[default]
    Process,
    /// A power cut too: each write is flushed before its answer. This includes claims with the first events of a
    /// prompt, events journalled before a tool runs or the user is asked, remembered approvals and commits.
    Power,
}

impl Durability {
    /// All values, the default first.
    pub const ALL: [Self; 2] = [Self::Process, Self::Power];

    /// Returns the name used in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Power => "power",
        }
    }
}
