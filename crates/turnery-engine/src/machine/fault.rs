//! Fault: bugs that tests seed into the machine, to see that the explorer finds them.
//!
//! `faulty!(self, Name)` is the constant `false` outside this crate's tests.

#[cfg(test)]
macro_rules! faulty {
    ($machine:ident, $name:ident) => {
        $machine.fault == Some(crate::machine::fault::Fault::$name)
    };
}

#[cfg(not(test))]
macro_rules! faulty {
    ($machine:ident, $name:ident) => {
        false
    };
}

/// One seeded bug.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    AcceptLateWords,
    CancelReportsEndTurn,
    CommitAfterLaneLost,
    CommitTwice,
    DropChildUsage,
    DropCutAnswer,
    DropResultOnDeny,
    EventAfterLoopEnd,
    ForgetAbort,
    ForgetOnError,
    ForgetStopCompaction,
    ForgetStopHook,
    ForgetStopModel,
    ForgetUnheard,
    ForgetValue,
    ForgetWithdraw,
    HearFollowUpsEarly,
    IgnoreAnswerLimit,
    IgnoreGraceOver,
    IgnoreOtherSpending,
    KeepBrokenCalls,
    LastControlWins,
    LastHaltWins,
    NoEndOfCompaction,
    NoEndOnAbort,
    PublishBeforeCommit,
    RunAfterCancel,
    RunAllBeside,
    RunBeforeVerdict,
    RunCutCalls,
    RunWhenSteered,
    SkipWithoutBracket,
    TellAsTheyEnd,
    TellErrorOfCancel,
    TellErrorTwice,
    UsageZeroForUnknown,
}
