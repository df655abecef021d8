//! Bugs that tests seed into the machine, to check that the explorer finds them.
//!
//! `faulty!(self, Name)` is the constant `false` outside this crate's tests.

#[cfg(test)]
macro_rules! faulty {
    ($machine:ident, $name:ident) => {
        $machine.seeded_fault == Some(crate::machine::seeded_fault::SeededFault::$name)
    };
}

#[cfg(not(test))]
macro_rules! faulty {
    ($machine:ident, $name:ident) => {
        false
    };
}

/// Seeded bug.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeededFault {
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
}
