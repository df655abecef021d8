//! Bugs that tests seed into the engine, to check that the explorer finds them.
//!
//! `faulty!(Name)` is the constant `false` outside this crate's tests.

#[cfg(test)]
macro_rules! faulty {
    ($name:ident) => {
        $crate::seeded_fault::is_seeded($crate::seeded_fault::SeededFault::$name)
    };
}

#[cfg(not(test))]
macro_rules! faulty {
    ($name:ident) => {
        false
    };
}

#[cfg(test)]
pub(crate) use seeding::{SeededFault, is_seeded, with_seeded_fault};

#[cfg(test)]
mod seeding {
    use std::cell::Cell;

    /// Seeded bug.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum SeededFault {
        AcceptLateUpdates,
        AcceptProse,
        ForgetReminder,
        CancelReportsEndTurn,
        CommitAfterLaneLost,
        CommitTwice,
        DropChildUsage,
        DropCutOffResponse,
        DropResultOnDeny,
        EventAfterLoopEnd,
        ForgetAbort,
        ForgetOnError,
        ForgetStopCompaction,
        ForgetCancelHook,
        ForgetStopModel,
        ForgetUndelivered,
        ForgetValue,
        ForgetCancelGate,
        DeliverFollowUpsEarly,
        IgnoreResponseLimit,
        IgnoreGraceOver,
        IgnoreOtherSpending,
        KeepIncompleteCalls,
        LastControlWins,
        LastHaltWins,
        OmitCompactionEnd,
        OmitEndOnAbort,
        PublishBeforeCommit,
        RunAfterCancel,
        RunAllInParallel,
        RunBeforeVerdict,
        RunCallsOfOversizedResponse,
        RunWhenSteered,
        OmitStartOfSkippedCall,
        DeliverResultsOutOfOrder,
        ReportErrorOnCancel,
        ReportErrorTwice,
        UsageZeroForUnknown,
        DeliverNestedResultToModel,
        ForgetAbortOfParent,
        ForgetNestedDecision,
        ForgetResults,
        ForgetStopOfParent,
        KeepNestedCalls,
        OmitEndOfWaitingNestedCall,
        OmitParentId,
        RecoverWithoutDenial,
        RecoverWithoutEnd,
        RecoverWithoutExcluding,
        RecoverWithoutNotice,
        RecoverWithoutOpenCompaction,
        RecoverWithoutOpenMessage,
        RecoverWithoutStart,
        RecoverWithoutTurnEnd,
        RecoverWithoutUsage,
        RecoverResultTwice,
        RecoverParentsFirst,
        RecoverAllCandidates,
        RecoverWithoutWinner,
        FailedCandidateIsEligible,
        CancelledCandidateIsSkipped,
        UnknownUsageWins,
        IgnoreChecks,
        RecordWinnerOnce,
        JudgeCountsFromZero,
    }

    thread_local! {
        static SEEDED: Cell<Option<SeededFault>> = const { Cell::new(None) };
    }

    /// Runs `work` with a bug in the engine, on this thread.
    pub(crate) fn with_seeded_fault<R>(fault: SeededFault, work: impl FnOnce() -> R) -> R {
        struct ResetOnDrop;
        impl Drop for ResetOnDrop {
            fn drop(&mut self) {
                SEEDED.set(None);
            }
        }
        SEEDED.set(Some(fault));
        let _reset = ResetOnDrop;
        work()
    }

    pub(crate) fn is_seeded(fault: SeededFault) -> bool {
        SEEDED.get() == Some(fault)
    }
}
