//! Tests of compaction plans: what is kept, summarised or shortened.

use super::conversation::{ConversationBuilder, first_words, long_text, numbered_lines};
use crate::{
    AudioData, CompactionBlock, CompactionSettings, Content, ContextSize, ImageData, LlmMessage,
    Message, Timestamp,
    compaction::{CompactionPlan, plan_compaction},
    context::ContextView,
    oracle,
};
use std::sync::Arc;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
/// Text of a line of typical length.
const LINE: &str = "here is what the tool has to say in line number";

/// Returns a prompt followed by `turns` turns with a tool call each.
fn session(turns: usize) -> Vec<Arc<LlmMessage>> {
    let mut talk = ConversationBuilder::new("s.c.1").user("prompt");
    for turn in 0..turns {
        let output = long_text(&format!("r{turn}"), 100);
        talk = talk.answer(&format!("a{turn}"), &[&output]);
    }
    talk.messages
}

fn settings() -> CompactionSettings {
    CompactionSettings::default()
}

fn view(messages: &[Arc<LlmMessage>]) -> ContextView {
    let mut view = ContextView::default();
    for message in messages {
        view.push(Arc::clone(message));
    }
    view
}

/// Applies the block of a plan to the view.
fn compact(
    view: &mut ContextView,
    plan: CompactionPlan,
    summary: &str,
) -> (CompactionBlock, ContextSize) {
    let (block, after) = plan.into_block(summary, NOW);
    assert!(view.apply_block(&block), "{block:?}");
    assert_eq!(oracle::check_history(view.messages()), Ok(()));
    (block, after)
}

// proves: UP-11
#[test]
fn first_two_and_last_ten_turns_are_retained() {
    let messages = session(14);
    let plan = plan_compaction(&messages, None, &settings()).unwrap();
    assert_eq!(
        first_words(plan.replaced_messages()),
        ["a2", "r2", "a3", "r3"]
    );
    let mut view = view(&messages);
    compact(&mut view, plan, "they looked around");
    let seen = first_words(view.messages());
    let beginning = ["prompt", "a0", "r0", "a1", "r1", "[Not", "a4", "r4", "a5"];
    assert_eq!(seen[..9], beginning);
    assert_eq!(seen.len(), 5 + 1 + 20);
}

/// A user message belongs to the turn that responds to it, even before the response.
// proves: UP-11
#[test]
fn turn_starts_with_its_inputs() {
    let mut talk = ConversationBuilder::new("s.c.1").user("unanswered");
    for turn in 0..14 {
        let prompt = long_text(&format!("u{turn}"), 50);
        talk = talk.user(prompt).answer(&format!("a{turn}"), &[]);
    }
    let plan = plan_compaction(&talk.messages, None, &settings()).unwrap();
    assert_eq!(
        first_words(plan.replaced_messages()),
        ["u2", "a2", "u3", "a3"]
    );
}

// proves: UP-11
#[test]
fn no_plan_if_all_turns_are_retained() {
    assert_eq!(plan_compaction(&[], None, &settings()), None);
    assert_eq!(plan_compaction(&session(1), None, &settings()), None);
    assert_eq!(plan_compaction(&session(12), None, &settings()), None);
    assert!(plan_compaction(&session(13), None, &settings()).is_some());
}

// proves: UP-11
#[test]
fn summary_is_a_labelled_user_message() {
    let plan = plan_compaction(&session(14), None, &settings()).unwrap();
    let (block, _) = plan.into_block("  they looked around\n", NOW);
    let [summary] = &block.keep_compacted[..] else {
        panic!("one summary: {block:?}");
    };
    assert!(matches!(summary.message, Message::User { .. }));
    let text = summary.message.text();
    assert!(text.starts_with("[Not a message of the user:"), "{text}");
    assert!(text.ends_with("<summary>\nthey looked around\n</summary>"));
    assert_eq!(block.through.as_str(), "s.c.1.m28");
    assert_eq!(block.created_at, NOW);
}

// proves: UP-11
#[test]
fn long_recent_outputs_are_shortened_with_note() {
    let mut talk = ConversationBuilder::new("s.c.1").user("prompt");
    for _ in 0..14 {
        talk = talk.answer("a", &[&numbered_lines(LINE, 51)]);
    }
    let messages = talk.answer("done", &[]).user("thanks").messages;
    let plan = plan_compaction(&messages, None, &settings()).unwrap();
    let (block, _) = plan.into_block("summary", NOW);
    let texts: Vec<Vec<String>> = block
        .keep_recent
        .iter()
        .filter_map(|kept| kept.shortened.as_ref())
        .map(|message| message.message.text().lines().map(str::to_owned).collect())
        .collect();
    assert_eq!(texts.len(), 8, "two of the last ten turns have no output");
    let text = &texts[0];
    assert_eq!(text.len(), 50);
    let line = |n: usize| format!("{LINE} {n}");
    assert_eq!((&text[0], &text[24]), (&line(1), &line(25)));
    assert!(text[25].contains("left out"), "{}", text[25]);
    assert_eq!((&text[26], &text[49]), (&line(28), &line(51)));
    let first = block.keep_recent[0].message_id.as_str();
    assert_eq!((first, block.keep_recent.len()), ("s.c.1.m13", 18));
}

// proves: UP-11
#[test]
fn fifty_lines_are_kept_but_long_lines_are_cut() {
    let mut talk = ConversationBuilder::new("s.c.1").user("prompt");
    for _ in 0..13 {
        talk = talk.answer("a", &[&numbered_lines("line", 50), &"ä".repeat(501)]);
    }
    let messages = talk.answer("done", &[]).user("thanks").messages;
    let (block, _) = plan_compaction(&messages, None, &settings())
        .unwrap()
        .into_block("s", NOW);
    let shortened: Vec<usize> = block
        .keep_recent
        .iter()
        .filter_map(|kept| kept.shortened.as_ref())
        .map(|message| message.message.text().len())
        .collect();
    assert_eq!(shortened, [996 + 3; 8]);
}

/// Results that the model has not seen yet stay whole while there is room.
// proves: UP-11
#[test]
fn unseen_results_stay_whole_if_they_fit() {
    let mut talk = ConversationBuilder::new("s.c.1").user("prompt");
    for _ in 0..13 {
        talk = talk.answer("a", &[&numbered_lines("line", 60)]);
    }
    let messages = talk.messages;
    let newest = |settings: &CompactionSettings| {
        let (block, _) = plan_compaction(&messages, None, settings)
            .unwrap()
            .into_block("s", NOW);
        let newest = block.keep_recent.last().unwrap();
        assert_eq!(newest.message_id.as_str(), "s.c.1.m26");
        newest
            .shortened
            .as_ref()
            .map(|it| it.message.text().lines().count())
    };
    assert_eq!(newest(&settings()), None);
    let target_tokens = 100;
    assert_eq!(
        newest(&CompactionSettings {
            target_tokens,
            ..settings()
        }),
        Some(5)
    );
}

// proves: UP-11
#[test]
fn retention_shrinks_until_it_fits() {
    let messages = session(40);
    let kept = |room| {
        let settings = CompactionSettings {
            target_tokens: room,
            max_summary_tokens: 100,
            ..settings()
        };
        let plan = plan_compaction(&messages, None, &settings).unwrap();
        let mut view = view(&messages);
        let (block, after) = compact(&mut view, plan, "summary");
        assert_eq!(view.size(), after);
        (
            block.keep_first.len(),
            block.keep_recent.len(),
            after.tokens <= room,
        )
    };
    // A turn is about 150 tokens: a call, and a result of 100 words.
    assert_eq!(kept(100_000), (5, 20, true));
    assert_eq!(kept(1_500), (5, 10, true));
    assert_eq!(kept(900), (5, 4, true));
    assert_eq!(kept(700), (5, 2, true));
    assert_eq!(kept(500), (3, 2, true));
    assert_eq!(kept(350), (0, 2, true));
    assert_eq!(kept(10), (0, 2, false));
}

// proves: UP-11
#[test]
fn call_and_results_stay_together_without_turn_ids() {
    let mut messages = session(14);
    for message in &mut messages {
        Arc::make_mut(message).turn_id = None;
    }
    let plan = plan_compaction(&messages, None, &settings()).unwrap();
    assert_eq!(
        first_words(plan.replaced_messages()),
        ["a2", "r2", "a3", "r3"]
    );
    compact(&mut view(&messages), plan, "summary");
}

/// An earlier summary goes into the new one, and messages that it left shortened stay so.
// proves: UP-11, LOOP-46
#[test]
fn second_block_includes_first_summary() {
    let mut talk = ConversationBuilder::new("s.c.1").user("prompt");
    for turn in 0..14 {
        talk = talk.answer(
            &format!("a{turn}"),
            &[&numbered_lines(&format!("r{turn} {LINE}"), 60)],
        );
    }
    let mut seen = view(&talk.messages);
    let first = plan_compaction(seen.messages(), None, &settings()).unwrap();
    compact(&mut seen, first, "the first summary");
    for turn in 14..18 {
        let at = talk.messages.len();
        talk = talk.answer(&format!("a{turn}"), &[&long_text(&format!("r{turn}"), 150)]);
        talk.messages[at..]
            .iter()
            .for_each(|m| seen.push(Arc::clone(m)));
    }
    let messages = Arc::clone(seen.messages());
    let second = plan_compaction(&messages, seen.block(), &settings()).unwrap();
    let [earlier] = second.previous_summary() else {
        panic!("one earlier summary: {second:?}");
    };
    assert!(earlier.message.text().contains("the first summary"));
    assert_eq!(
        first_words(second.replaced_messages()),
        ["a4", "r4", "a5", "r5", "a6", "r6", "a7", "r7"]
    );
    let (block, _) = compact(&mut seen, second, "the second summary");
    let shown: Vec<String> = seen.messages().iter().map(|m| m.message.text()).collect();
    assert!(!shown.iter().any(|text| text.contains("the first summary")));
    assert_eq!(
        first_words(seen.messages())[..7],
        ["prompt", "a0", "r0", "a1", "r1", "[Not", "a8"]
    );
    let shortened = block
        .keep_recent
        .iter()
        .filter(|kept| kept.shortened.is_some());
    assert_eq!(shortened.count(), 6, "results 8 to 13");
    // Applying the block to the original messages gives the same view.
    let mut raw = view(&talk.messages);
    assert!(raw.apply_block(&block));
    assert_eq!(raw.messages(), seen.messages());
}

/// A summary must leave less than there was, or there is nothing to plan.
#[test]
fn short_history_is_not_summarized() {
    let mut talk = ConversationBuilder::new("s.c.1").user("prompt");
    for _ in 0..13 {
        talk = talk.answer("a", &[]);
    }
    assert_eq!(plan_compaction(&talk.messages, None, &settings()), None);
    let much = session(13);
    let plan = plan_compaction(&much, None, &settings()).unwrap();
    assert!(
        plan.max_summary_tokens() < plan.replaced_messages().iter().sum::<ContextSize>().tokens
    );
    let longest = "word".repeat(usize::try_from(plan.max_summary_tokens()).unwrap());
    let (_, after) = plan.into_block(&longest, NOW);
    assert!(after.tokens < much.iter().sum::<ContextSize>().tokens);
}

/// Images and audio in outputs are dropped only if room is short; short lines not worth a note are kept.
// proves: UP-11
#[test]
fn tool_images_are_dropped_if_context_is_tight() {
    let picture = Content::Image(ImageData {
        mime_type: "image/png".to_owned(),
        base64: "QQ==".into(),
    });
    let recording = Content::Audio(AudioData {
        mime_type: "audio/wav".to_owned(),
        base64: "QQ==".into(),
    });
    let mut messages = ConversationBuilder::new("s.c.1").user("prompt").messages;
    for turn in 0..13 {
        let mut talk =
            ConversationBuilder::new(format!("s.c.{turn}")).answer("a", &["few\nshort\nlines"]);
        if let Message::ToolResult { content, .. } =
            &mut Arc::make_mut(&mut talk.messages[1]).message
        {
            content.extend([picture.clone(), recording.clone()]);
        }
        messages.append(&mut talk.messages);
    }
    let outputs = |room| {
        let settings = CompactionSettings {
            target_tokens: room,
            ..settings()
        };
        let (block, _) = plan_compaction(&messages, None, &settings)
            .unwrap()
            .into_block("s", NOW);
        let shortened = block
            .keep_recent
            .into_iter()
            .filter_map(|kept| kept.shortened);
        shortened
            .map(|message| message.message.text())
            .collect::<Vec<_>>()
    };
    assert!(outputs(u64::MAX).is_empty());
    let short = outputs(8_000);
    let without = "few\nshort\nlines\n[a picture was left out here to make room]\n\
        [a recording was left out here to make room]";
    assert_eq!(
        short, [without; 4],
        "of five turns, the last is not seen yet"
    );
}
