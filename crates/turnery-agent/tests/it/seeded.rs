//! The tests can fail: each bug that is seeded into the session task is found by one of them.

use crate::{
    continuing, framing, hooking, interrupting, journalling, opening, prompting, shared_queue,
    simulation, slow_client, steering, storing,
};
use std::panic::catch_unwind;
use turnery_agent::faults::{Fault, seeded};

#[test]
fn every_seeded_bug_is_found() {
    let table: [(Fault, fn()); 21] = [
        (
            Fault::KeepRoomWhenIdle,
            shared_queue::idle_session_leaves_the_line_for_the_queue,
        ),
        (
            Fault::AnswerBeforeEvents,
            prompting::a_result_comes_after_every_event_and_the_commit,
        ),
        (
            Fault::KeepRefusedMessages,
            storing::a_refused_prompt_is_not_in_the_next_context,
        ),
        (
            Fault::KeepLostMessages,
            storing::a_prompt_that_could_not_be_stored_is_forgotten,
        ),
        (
            Fault::LastPromptFirst,
            prompting::prompts_run_in_the_order_in_which_they_came,
        ),
        (
            Fault::LeaveQuestionOpen,
            slow_client::a_question_is_taken_back_though_nobody_reads,
        ),
        (
            Fault::LeaveModelRunning,
            slow_client::a_client_that_does_not_read_holds_the_model_back,
        ),
        (
            Fault::ListenAlways,
            slow_client::a_client_that_does_not_read_holds_the_model_back,
        ),
        (
            Fault::NoCatchingUp,
            opening::a_second_handle_is_told_that_the_session_is_busy_and_then_catches_up,
        ),
        (
            Fault::BeforeLoopIsDeaf,
            hooking::a_no_before_the_loop_leaves_neither_event_nor_record,
        ),
        (
            Fault::BrokenHookMeansYes,
            hooking::a_hook_that_breaks_before_a_tool_is_a_no,
        ),
        (
            Fault::ForgetUnheardWords,
            steering::what_was_said_too_late_is_the_next_prompt_before_those_that_wait,
        ),
        (
            Fault::ForgetUnheardWords,
            simulation::every_random_world_ends_with_what_was_shown_stored_and_told_in_agreement,
        ),
        (
            Fault::StopAtFrameSwitch,
            simulation::every_random_world_ends_with_what_was_shown_stored_and_told_in_agreement,
        ),
        (
            Fault::ForgetSummary,
            continuing::a_compaction_on_request_is_a_loop_of_its_own_without_a_turn,
        ),
        (
            Fault::RerunSeesItself,
            continuing::a_loop_that_is_run_again_takes_the_place_of_the_first_run,
        ),
        (
            Fault::StopAtFrameSwitch,
            framing::a_prompt_goes_on_in_the_frame_that_its_loop_opened,
        ),
        (
            Fault::OneCallAtATime,
            framing::calls_that_may_run_beside_each_other_do,
        ),
        (
            Fault::CountLoops,
            interrupting::prompts_after_a_lost_one_are_stored,
        ),
        (
            Fault::JournalLate,
            interrupting::interrupted_prompt_is_in_the_next_context,
        ),
        (
            Fault::DropJournalWrite,
            journalling::cancel_during_journal_write_leaves_no_hole,
        ),
    ];
    for (fault, test) in table {
        test();
        assert!(
            seeded(fault, || catch_unwind(test)).is_err(),
            "{fault:?} was not found"
        );
    }
}
