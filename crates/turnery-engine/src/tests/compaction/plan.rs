//! Tests of plans: what stays, what is summarised, what is shortened.

use super::talk::{Talk, lines, long, words};
use crate::{
    AudioData, CompactionBlock, CompactionSettings, Content, ContextSize, ImageData, LlmMessage,
    Message, Timestamp,
    compaction::{Plan, plan},
    context::View,
    oracle,
};
use std::sync::Arc;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
/// Lines that are about as long as lines are.
const LINE: &str = "here is what the tool has to say in line number";

/// A prompt, and then a tool call in each turn: `turns` turns.
fn session(turns: usize) -> Vec<Arc<LlmMessage>> {
    let mut talk = Talk::of("s.c.1").user("prompt");
    for turn in 0..turns {
        let output = long(&format!("r{turn}"), 100);
        talk = talk.answer(&format!("a{turn}"), &[&output]);
    }
    talk.messages
}

fn settings() -> CompactionSettings {
    CompactionSettings::default()
}

fn view(messages: &[Arc<LlmMessage>]) -> View {
    let mut view = View::default();
    for message in messages {
        view.push(Arc::clone(message));
    }
    view
}

/// Lay the block of this plan over what is seen.
fn compact(view: &mut View, plan: Plan, summary: &str) -> (CompactionBlock, ContextSize) {
    let (block, after) = plan.block(summary, NOW);
    assert!(view.lay(&block), "{block:?}");
    assert_eq!(oracle::check_history(view.messages()), Ok(()));
    (block, after)
}

// proves: UP-11
#[test]
fn the_first_two_and_the_last_ten_turns_stay() {
    let messages = session(14);
    let plan = plan(&messages, None, &settings()).unwrap();
    assert_eq!(words(plan.replaced()), ["a2", "r2", "a3", "r3"]);
    let mut view = view(&messages);
    compact(&mut view, plan, "they looked around");
    let seen = words(view.messages());
    let beginning = ["prompt", "a0", "r0", "a1", "r1", "[Not", "a4", "r4", "a5"];
    assert_eq!(seen[..9], beginning);
    assert_eq!(seen.len(), 5 + 1 + 20);
}

/// What the user says belongs to the turn that answers it, be it answered or not.
// proves: UP-11
#[test]
fn a_turn_begins_with_what_was_put_to_the_model() {
    let mut talk = Talk::of("s.c.1").user("unanswered");
    for turn in 0..14 {
        let prompt = long(&format!("u{turn}"), 50);
        talk = talk.user(prompt).answer(&format!("a{turn}"), &[]);
    }
    let plan = plan(&talk.messages, None, &settings()).unwrap();
    assert_eq!(words(plan.replaced()), ["u2", "a2", "u3", "a3"]);
}

// proves: UP-11
#[test]
fn nothing_is_planned_while_all_turns_stay() {
    assert_eq!(plan(&[], None, &settings()), None);
    assert_eq!(plan(&session(1), None, &settings()), None);
    assert_eq!(plan(&session(12), None, &settings()), None);
    assert!(plan(&session(13), None, &settings()).is_some());
}

// proves: UP-11
#[test]
fn the_summary_stands_in_the_users_place_and_says_what_it_is() {
    let plan = plan(&session(14), None, &settings()).unwrap();
    let (block, _) = plan.block("  they looked around\n", NOW);
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
fn long_outputs_of_recent_turns_are_shortened_with_a_note() {
    let mut talk = Talk::of("s.c.1").user("prompt");
    for _ in 0..14 {
        talk = talk.answer("a", &[&lines(LINE, 51)]);
    }
    let messages = talk.answer("done", &[]).user("thanks").messages;
    let plan = plan(&messages, None, &settings()).unwrap();
    let (block, _) = plan.block("summary", NOW);
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
fn fifty_lines_stay_as_they_are_but_endless_ones_do_not() {
    let mut talk = Talk::of("s.c.1").user("prompt");
    for _ in 0..13 {
        talk = talk.answer("a", &[&lines("line", 50), &"ä".repeat(501)]);
    }
    let messages = talk.answer("done", &[]).user("thanks").messages;
    let (block, _) = plan(&messages, None, &settings()).unwrap().block("s", NOW);
    let shortened: Vec<usize> = block
        .keep_recent
        .iter()
        .filter_map(|kept| kept.shortened.as_ref())
        .map(|message| message.message.text().len())
        .collect();
    assert_eq!(shortened, [996 + 3; 8]);
}

/// What the model has not answered yet, it has not seen: it stays whole while there is room.
// proves: UP-11
#[test]
fn results_that_the_model_has_not_seen_stay_whole_while_there_is_room() {
    let mut talk = Talk::of("s.c.1").user("prompt");
    for _ in 0..13 {
        talk = talk.answer("a", &[&lines("line", 60)]);
    }
    let messages = talk.messages;
    let newest = |settings: &CompactionSettings| {
        let (block, _) = plan(&messages, None, settings).unwrap().block("s", NOW);
        let newest = block.keep_recent.last().unwrap();
        assert_eq!(newest.message_id.as_str(), "s.c.1.m26");
        newest
            .shortened
            .as_ref()
            .map(|it| it.message.text().lines().count())
    };
    assert_eq!(newest(&settings()), None);
    let room = 100;
    assert_eq!(newest(&CompactionSettings { room, ..settings() }), Some(5));
}

// proves: UP-11
#[test]
fn less_is_kept_step_by_step_until_it_fits() {
    let messages = session(40);
    let kept = |room| {
        let settings = CompactionSettings {
            room,
            summary_tokens: 100,
            ..settings()
        };
        let plan = plan(&messages, None, &settings).unwrap();
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
fn a_call_stays_with_its_results_even_without_turn_ids() {
    let mut messages = session(14);
    for message in &mut messages {
        Arc::make_mut(message).turn_id = None;
    }
    let plan = plan(&messages, None, &settings()).unwrap();
    assert_eq!(words(plan.replaced()), ["a2", "r2", "a3", "r3"]);
    compact(&mut view(&messages), plan, "summary");
}

/// An earlier summary goes into the new one, and what it left shortened stays so.
// proves: UP-11, LOOP-46
#[test]
fn a_second_block_takes_in_the_first() {
    let mut talk = Talk::of("s.c.1").user("prompt");
    for turn in 0..14 {
        talk = talk.answer(
            &format!("a{turn}"),
            &[&lines(&format!("r{turn} {LINE}"), 60)],
        );
    }
    let mut seen = view(&talk.messages);
    let first = plan(seen.messages(), None, &settings()).unwrap();
    compact(&mut seen, first, "the first summary");
    for turn in 14..18 {
        let at = talk.messages.len();
        talk = talk.answer(&format!("a{turn}"), &[&long(&format!("r{turn}"), 150)]);
        talk.messages[at..]
            .iter()
            .for_each(|m| seen.push(Arc::clone(m)));
    }
    let messages = Arc::clone(seen.messages());
    let second = plan(&messages, seen.block(), &settings()).unwrap();
    let [earlier] = second.earlier() else {
        panic!("one earlier summary: {second:?}");
    };
    assert!(earlier.message.text().contains("the first summary"));
    assert_eq!(
        words(second.replaced()),
        ["a4", "r4", "a5", "r5", "a6", "r6", "a7", "r7"]
    );
    let (block, _) = compact(&mut seen, second, "the second summary");
    let shown: Vec<String> = seen.messages().iter().map(|m| m.message.text()).collect();
    assert!(!shown.iter().any(|text| text.contains("the first summary")));
    assert_eq!(
        words(seen.messages())[..7],
        ["prompt", "a0", "r0", "a1", "r1", "[Not", "a8"]
    );
    let shortened = block
        .keep_recent
        .iter()
        .filter(|kept| kept.shortened.is_some());
    assert_eq!(shortened.count(), 6, "results 8 to 13");
    // The same block over the messages as they were said shows the same.
    let mut raw = view(&talk.messages);
    assert!(raw.lay(&block));
    assert_eq!(raw.messages(), seen.messages());
}

/// A summary must leave less than there was, or there is nothing to plan.
#[test]
fn what_is_too_little_to_be_worth_a_summary_stays() {
    let mut talk = Talk::of("s.c.1").user("prompt");
    for _ in 0..13 {
        talk = talk.answer("a", &[]);
    }
    assert_eq!(plan(&talk.messages, None, &settings()), None);
    let much = session(13);
    let plan = plan(&much, None, &settings()).unwrap();
    assert!(plan.summary_tokens() < plan.replaced().iter().sum::<ContextSize>().tokens);
    let longest = "word".repeat(usize::try_from(plan.summary_tokens()).unwrap());
    let (_, after) = plan.block(&longest, NOW);
    assert!(after.tokens < much.iter().sum::<ContextSize>().tokens);
}

/// Pictures and recordings in outputs stay at first and go when room is short; lines too short to be worth a note stay.
// proves: UP-11
#[test]
fn pictures_of_tools_go_when_room_is_short() {
    let picture = Content::Image(ImageData {
        mime_type: "image/png".to_owned(),
        base64: "QQ==".into(),
    });
    let recording = Content::Audio(AudioData {
        mime_type: "audio/wav".to_owned(),
        base64: "QQ==".into(),
    });
    let mut messages = Talk::of("s.c.1").user("prompt").messages;
    for turn in 0..13 {
        let mut talk = Talk::of(format!("s.c.{turn}")).answer("a", &["few\nshort\nlines"]);
        if let Message::ToolResult { content, .. } =
            &mut Arc::make_mut(&mut talk.messages[1]).message
        {
            content.extend([picture.clone(), recording.clone()]);
        }
        messages.append(&mut talk.messages);
    }
    let outputs = |room| {
        let settings = CompactionSettings { room, ..settings() };
        let (block, _) = plan(&messages, None, &settings).unwrap().block("s", NOW);
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
