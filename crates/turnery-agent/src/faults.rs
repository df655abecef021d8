//! Faults: bugs that tests seed into the session task, to see that the tests find them.
//!
//! `faulty!(Name)` is the constant `false` unless the crate is built with the feature `faults`, which
//! only its own tests ask for.

#[cfg(feature = "faults")]
macro_rules! faulty {
    ($name:ident) => {
        $crate::faults::is_seeded($crate::faults::Fault::$name)
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
pub use seeding::{Fault, seeded};

#[cfg(feature = "faults")]
mod seeding {
    use std::cell::Cell;

    /// One seeded bug.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Fault {
        /// The prompt is answered before its last events are shown.
        AnswerBeforeEvents,
        /// A hook that breaks or hangs before something counts as a yes.
        BrokenHookMeansYes,
        /// A journal write that has not been made yet is dropped for the next one.
        DropJournalWrite,
        /// A summary does not take the place of what it stands for.
        ForgetSummary,
        /// What the loop did not hear is lost.
        ForgetUnheardWords,
        /// The no of a hook before a loop is not heard.
        BeforeLoopIsDeaf,
        /// A prompt ends with the loop that opened a frame.
        StopAtFrameSwitch,
        /// The next loop's number is the count of the loops before it.
        CountLoops,
        /// What was done is journalled after the next call has begun.
        JournalLate,
        /// Calls run one after the other, also those that need not.
        OneCallAtATime,
        /// A loop that is run again sees its first run.
        RerunSeesItself,
        /// A refused prompt stays in the context of the next one.
        KeepRefusedMessages,
        /// An idle session keeps a place in the queue that it shares with others.
        KeepRoomWhenIdle,
        /// A prompt that was not stored stays in the context of the next one.
        KeepLostMessages,
        /// Of the prompts that wait, the last one is taken.
        LastPromptFirst,
        /// A question is not taken back when the prompt is cancelled.
        LeaveQuestionOpen,
        /// A model goes on when the prompt is cancelled.
        LeaveModelRunning,
        /// The model is listened to, however far behind the client is.
        ListenAlways,
        /// What another handle did in the session is not read.
        NoCatchingUp,
    }

    thread_local! {
        static SEEDED: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    /// Run `work` with a bug in every session task of this thread.
    pub fn seeded<R>(fault: Fault, work: impl FnOnce() -> R) -> R {
        struct Cure;
        impl Drop for Cure {
            fn drop(&mut self) {
                SEEDED.set(None);
            }
        }
        SEEDED.set(Some(fault));
        let _cure = Cure;
        work()
    }

    pub(crate) fn is_seeded(fault: Fault) -> bool {
        SEEDED.get() == Some(fault)
    }
}
