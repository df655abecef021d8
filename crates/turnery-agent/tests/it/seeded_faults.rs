//! The tests can fail: each bug that is seeded into the session task is found by one of them.

use crate::{
    candidate_folders, continuation, frames, hooks, journal, open, prompts, queued_prompts,
    recovery, shared_queue, simulation, slow_client, steering, store_failures,
};
use std::panic::catch_unwind;
use turnery_agent::faults::{SeededFault, with_seeded_fault};

macro_rules! table {
    ($($fault:ident => $test:path,)+) => {
        [$((SeededFault::$fault, $test as fn())),+]
    };
}

#[test]
fn every_seeded_fault_is_found() {
    let table = table! {
        KeepSlotWhenIdle => shared_queue::idle_session_releases_its_slot,
        ResultBeforeEvents => prompts::result_follows_all_events_and_the_commit,
        KeepRejectedMessages => store_failures::refused_prompt_is_not_in_next_context,
        KeepLostMessages => store_failures::unstored_prompt_is_not_in_next_context,
        RunLastPromptFirst => prompts::prompts_run_in_arrival_order,
        RunQueuedTwice => queued_prompts::prompt_run_by_a_dead_host_is_not_run_again,
        RunWithdrawn => queued_prompts::withdrawn_prompt_never_runs,
        KeepRequestOnCancel => slow_client::permission_request_is_cancelled_without_reader,
        KeepModelOnCancel => slow_client::unread_outbox_applies_backpressure,
        ReadModelWhenFull => slow_client::unread_outbox_applies_backpressure,
        SkipReload => open::second_handle_gets_busy_then_catches_up,
        IgnoreBeforeLoopHook => hooks::stop_before_loop_leaves_no_event_or_record,
        BrokenHookApproves => hooks::panicking_hook_stops_the_tool,
        DropUndelivered => steering::late_interjection_becomes_the_next_prompt,
        DropUndelivered => simulation::random_runs_agree_on_shown_and_stored,
        EndAtFrameSwitch => simulation::random_runs_agree_on_shown_and_stored,
        ForgetSummary => continuation::requested_compaction_is_a_loop_without_turn,
        KeepLoopInItsRerun => continuation::rerun_replaces_the_first_run,
        EndAtFrameSwitch => frames::prompt_continues_in_opened_frame,
        SequentialCalls => frames::parallel_calls_run_concurrently,
        NumberLoopsByCount => recovery::prompts_after_a_lost_one_are_stored,
        JournalAfterNextCall => recovery::interrupted_prompt_is_in_the_next_context,
        CandidateInSessionFolder => candidate_folders::winner_changes_are_applied_as_one_edit,
        KeepCandidateFolders => candidate_folders::winner_changes_are_applied_as_one_edit,
        ApplyLoserChanges => candidate_folders::winner_changes_are_applied_as_one_edit,
        DropJournalWrite => journal::cancel_during_journal_write_leaves_no_hole,
        JournalWithoutLane => journal::tool_does_not_run_once_the_lane_is_lost,
    };
    for (fault, test) in table {
        test();
        assert!(
            with_seeded_fault(fault, || catch_unwind(test)).is_err(),
            "{fault:?} was not found"
        );
    }
}
