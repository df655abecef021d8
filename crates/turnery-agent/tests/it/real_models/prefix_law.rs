//! The prefix law: the bytes of a request up to its last message begin the next request too, so that the provider's
//! cache holds, in one process and over a load. The last message stays as well if it was answered.

use super::{
    dialect::{DIALECTS, Dialect, Ending, ScriptedCall, ScriptedResponse},
    server::RecordedRequest,
    world::{PrefixWorld, picture},
};
use proptest::{prelude::*, test_runner::TestRunner};
use serde_json::{Value, value::RawValue};
use std::collections::BTreeMap;
use turnery_agent::{PromptOptions, Session};
use turnery_engine::{Content, Limits};
use turnery_tools::Mode;

/// Cases for each dialect.
const CASES: u32 = 24;

/// One step of a random conversation.
#[derive(Clone, Debug)]
enum Step {
    Prompt(PromptStep),
    Mode(Mode),
    /// The session is opened by another process, with these instructions.
    Reopen(&'static str),
}

#[derive(Clone, Debug)]
struct PromptStep {
    has_picture: bool,
    /// Responses with calls.
    rounds: Vec<ScriptedResponse>,
    last: ScriptedResponse,
    /// Turn limit, after which the model is asked for a last reply.
    turns: u32,
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-zä_]{1,4}", inner), 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_call() -> impl Strategy<Value = ScriptedCall> {
    let id = prop::sample::select(vec!["", "c", "c.1", "toolu_01", "ä b"]);
    // `nothing` is no tool.
    let tool = prop::sample::select(vec!["look", "look", "look", "show", "steer", "nothing"]);
    let number = prop::sample::select(vec!["1.10", "1E5", "123456789012345680000", "-0.0"]);
    (id, tool, any::<f64>(), any_json(), number).prop_map(|(id, tool, float, value, number)| {
        let float = Value::from(float);
        ScriptedCall {
            id,
            tool,
            args: format!(r#"{{"z": {float}, "a": {value}, "n" : {number}}}"#),
        }
    })
}

fn any_response(calls: std::ops::Range<usize>) -> impl Strategy<Value = ScriptedResponse> {
    let thinking = prop::option::of("[a-z ]{1,9}");
    let text = prop::sample::select(vec!["", "I see.", " \n", "wait… \"what\"?"]);
    (thinking, text, prop::collection::vec(any_call(), calls)).prop_map(
        |(thinking, text, calls)| ScriptedResponse {
            thinking,
            calls,
            ..ScriptedResponse::text(text)
        },
    )
}

fn any_prompt() -> impl Strategy<Value = Step> {
    let ending = prop_oneof![
        4 => Just(Ending::Complete),
        1 => Just(Ending::Cut),
        1 => Just(Ending::Held),
    ];
    let rounds = prop::collection::vec(any_response(1..4), 0..3);
    (any::<bool>(), rounds, any_response(0..1), ending, 1..4u32).prop_map(
        |(has_picture, rounds, last, ending, turns)| {
            Step::Prompt(PromptStep {
                has_picture,
                rounds,
                last: ScriptedResponse { ending, ..last },
                turns,
            })
        },
    )
}

fn any_conversation() -> impl Strategy<Value = Vec<Step>> {
    let mode = prop::sample::select(Mode::ALL.to_vec());
    let instructions = prop::sample::select(vec!["Be good.", "Be good.", "Be better."]);
    let step = prop_oneof![
        6 => any_prompt(),
        1 => mode.prop_map(Step::Mode),
        2 => instructions.prop_map(Step::Reopen),
    ];
    prop::collection::vec(step, 2..7)
}

/// Runs a prompt. A held response is cancelled.
async fn run_step(world: &PrefixWorld, session: &Session, step: &PromptStep) {
    let server = &world.servers[0];
    server.play(step.rounds.iter().chain([&step.last]).cloned());
    let mut content = vec![Content::text("Look around.")];
    content.extend(step.has_picture.then(picture));
    let options = PromptOptions {
        limits: Some(Limits {
            turns: step.turns,
            ..Limits::default()
        }),
        ..PromptOptions::default()
    };
    let handle = session.prompt(content, options).unwrap();
    let result = handle.result();
    tokio::pin!(result);
    tokio::select! {
        ended = &mut result => drop(ended.unwrap()),
        () = server.held.notified() => {
            session.cancel_prompts();
            result.await.unwrap();
        }
    }
}

/// A request body in its parts.
struct RequestParts<'a> {
    body: &'a str,
    /// Fields other than the messages, and whether calls are allowed.
    fields: BTreeMap<&'a str, &'a str>,
    messages: Vec<&'a str>,
}

impl<'a> RequestParts<'a> {
    fn new(body: &'a str, dialect: &Dialect) -> Self {
        let mut fields: BTreeMap<&str, &RawValue> = serde_json::from_str(body).unwrap();
        let list = fields.remove(dialect.list).unwrap();
        // A last reply forbids calls.
        fields.remove(dialect.choice);
        let messages: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap();
        Self {
            body,
            fields: fields
                .into_iter()
                .map(|(name, raw)| (name, raw.get()))
                .collect(),
            messages: messages.into_iter().map(RawValue::get).collect(),
        }
    }

    /// Returns the bytes before the last message, or with it.
    fn prefix(&self, with_last: bool) -> &'a str {
        let last = self.messages.last().unwrap();
        let start = last.as_ptr() as usize - self.body.as_ptr() as usize;
        &self.body[..start + if with_last { last.len() } else { 0 }]
    }
}

fn check_law(requests: &[RecordedRequest], dialect: &Dialect) -> Result<(), TestCaseError> {
    let unmarked = requests.iter().map(|request| match dialect.moving_mark {
        Some(mark) => request.body.replace(mark, ""),
        None => request.body.clone(),
    });
    let bodies: Vec<String> = unmarked.collect();
    for (n, pair) in bodies.windows(2).enumerate() {
        let [before, after] = [&pair[0], &pair[1]].map(|body| RequestParts::new(body, dialect));
        prop_assert_eq!(&before.fields, &after.fields);
        let prefix = before.prefix(requests[n].is_answered);
        prop_assert!(
            after.body.starts_with(prefix),
            "request {} begins with\n{}\nrequest {} is\n{}",
            n,
            prefix,
            n + 1,
            after.body
        );
    }
    Ok(())
}

async fn check_conversation(
    dialect: &'static [Dialect],
    steps: Vec<Step>,
) -> Result<(), TestCaseError> {
    let world = PrefixWorld::new(dialect).await;
    let mut session = world.create().await;
    for step in &steps {
        match step {
            Step::Prompt(prompt) => run_step(&world, &session, prompt).await,
            Step::Mode(mode) => session.set_mode(*mode).await.unwrap(),
            Step::Reopen(instructions) => {
                world.set(|settings| settings.system = (*instructions).into());
                session = world.reopen(&session).await;
            }
        }
    }
    session.close().await;
    let requests = world.servers[0].requests.lock().unwrap().clone();
    check_law(&requests, &dialect[0])
}

#[test]
fn request_begins_like_the_one_before() {
    for dialect in DIALECTS.chunks(1) {
        let config = ProptestConfig {
            cases: CASES,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let checked = TestRunner::new(config).run(&any_conversation(), |steps| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(check_conversation(dialect, steps))
        });
        checked.unwrap_or_else(|failure| panic!("{:?}: {failure}", dialect[0].api));
    }
}
