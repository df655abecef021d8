//! Promises of the stores, and how one that is broken is told.

use std::fmt;

/// A promise of the stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Check {
    /// A living holder keeps its lane until its lease is over.
    LivingHolderIsKept,
    /// A dead holder, or one whose lease is over, keeps nobody out.
    DeadHolderIsReplaced,
    /// Each claim has a greater generation than all before it.
    GenerationsGrow,
    /// Nothing is stored for anybody but the holder, who is never refused.
    OnlyHolderWrites,
    /// A commit follows the head that it expects.
    HeadIsCompared,
    /// A commit is stored whole, or not at all.
    CommitIsWhole,
    /// A commit is stored once, however often it is repeated, and stays.
    CommitIsStoredOnce,
    /// A refused request leaves nothing behind.
    RefusalChangesNothing,
    /// A journalled event is not lost.
    JournalIsKept,
    /// A number of a loop is never used again.
    NumbersAreNotReused,
    /// An effect is delivered by one process at a time.
    EffectHasOneTaker,
    /// An effect is delivered until that has succeeded.
    EffectIsKept,
    /// Nothing is delivered but what a commit has stored and nobody has finished.
    EffectIsPending,
    /// A session in use is not deleted.
    SessionInUseIsKept,
    /// A call fails with no other errors than those of its contract.
    NothingElseFails,
    /// A model answers like the store that it stands for.
    ModelIsTrue,
}

/// A broken promise.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) check: Check,
    pub(crate) text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.check, self.text)
    }
}

/// Fails with a violation unless the promise holds.
pub(crate) fn require(
    holds: bool,
    check: Check,
    text: impl FnOnce() -> String,
) -> Result<(), Violation> {
    match holds {
        true => Ok(()),
        false => Err(Violation {
            check,
            text: text(),
        }),
    }
}
