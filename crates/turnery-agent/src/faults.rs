//! Defines bugs that tests seed into the session task, to check that the tests find them.
//!
//! `faulty!(Name)` is the constant `false` unless the crate is built with the feature `faults`, which only
//! its own tests enable.

#[cfg(feature = "faults")]
macro_rules! faulty {
    ($name:ident) => {
        $crate::faults::is_seeded($crate::faults::SeededFault::$name)
    };
}

#[cfg(not(feature = "faults"))]
macro_rules! faulty {
    ($name:ident) => {
        false
    };
}

#[cfg(feature = "faults")]
pub(crate) use seeding::is_seeded;
#[cfg(feature = "faults")]
pub use seeding::{SeededFault, with_seeded_fault};

#[cfg(feature = "faults")]
mod seeding {
    use std::cell::Cell;

    /// One seeded bug.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SeededFault {
        /// Returns the result of a prompt before its last events are shown.
        ResultBeforeEvents,
        /// Treats a hook that panics or hangs before a step as approval.
        BrokenHookApproves,
        /// Drops a pending journal write in favour of the next one.
        DropJournalWrite,
        /// Goes on after the store has refused events because the lane is lost.
        JournalWithoutLane,
        /// Does not replace the summarized messages by the summary.
        ForgetSummary,
        /// Loses interjections that the loop did not deliver.
        DropUndelivered,
        /// Ignores a rejection by a `before_loop` hook.
        IgnoreBeforeLoopHook,
        /// Ends a prompt with the loop that opened a frame.
        EndAtFrameSwitch,
        /// Numbers the next loop by the count of the loops before it.
        NumberLoopsByCount,
        /// Journals events only after the next call has begun.
        JournalAfterNextCall,
        /// Runs parallel calls one at a time.
        SequentialCalls,
        /// Keeps the first run of a loop in the context of its rerun.
        KeepLoopInItsRerun,
        /// Keeps a rejected prompt in the context of the next one.
        KeepRejectedMessages,
        /// Keeps a slot of a shared queue while the session is idle.
        KeepSlotWhenIdle,
        /// Keeps a prompt that was not stored in the context of the next one.
        KeepLostMessages,
        /// Takes the last queued prompt first.
        RunLastPromptFirst,
        /// Runs a queued prompt that another host has run.
        RunQueuedTwice,
        /// Runs a queued prompt that was withdrawn.
        RunWithdrawn,
        /// Leaves a question open when the prompt is cancelled.
        KeepRequestOnCancel,
        /// Leaves the model running when the prompt is cancelled.
        KeepModelOnCancel,
        /// Reads from the model however far behind the client is.
        ReadModelWhenFull,
        /// Does not read what another handle did in the session.
        SkipReload,
        /// Lets candidates work in the session's folder.
        CandidateInSessionFolder,
        /// Leaves the folders of candidates behind.
        KeepCandidateFolders,
        /// Applies the changes of another candidate than the winner.
        ApplyLoserChanges,
    }

    thread_local! {
        static SEEDED: Cell<Option<SeededFault>> = const { Cell::new(None) };
    }

    /// Runs `work` with a bug in every session task of this thread.
    pub fn with_seeded_fault<R>(fault: SeededFault, work: impl FnOnce() -> R) -> R {
        struct ResetOnDrop;
        impl Drop for ResetOnDrop {
            fn drop(&mut self) {
                SEEDED.set(None);
            }
        }
        SEEDED.set(Some(fault));
        let _cure = ResetOnDrop;
        work()
    }

    pub(crate) fn is_seeded(fault: SeededFault) -> bool {
        SEEDED.get() == Some(fault)
    }
}
