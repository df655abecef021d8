//! One conversation over all APIs: every request is one that the real API accepts, and reasoning goes back to its own
//! model only.

use super::{
    dialect::{DIALECTS, Ending, ScriptedCall, ScriptedResponse},
    world::{PrefixWorld, model_name, picture, run_prompt},
};
use model_api_rules::ApiFormat;
use std::sync::Arc;
use turnery_agent::{PromptOptions, Session};
use turnery_engine::{Content, Outcome};

/// Start of the signatures that the servers issue.
const SIGNATURE: &str = "c2lnbmVk";

/// Places of the APIs in the list of dialects.
const ANTHROPIC: usize = 0;
const CHAT: usize = 1;
const RESPONSES: usize = 2;
const GEMINI: usize = 3;

fn calls(thinking: &str, text: &str, tools: &[(&'static str, &'static str)]) -> ScriptedResponse {
    let call = |(id, tool): &(&'static str, &'static str)| ScriptedCall {
        id,
        tool,
        args: r#"{"at": [1.50, "ä"]}"#.to_owned(),
    };
    ScriptedResponse {
        thinking: Some(thinking.to_owned()),
        calls: tools.iter().map(call).collect(),
        ..ScriptedResponse::text(text)
    }
}

/// Parallel calls, a picture from a tool, a tool that does not exist, and an answer; ids repeat between models.
fn rounds() -> Vec<ScriptedResponse> {
    vec![
        calls(
            "First.",
            "I look.",
            &[("call_1", "look"), ("call_2", "look")],
        ),
        calls("Then.", "", &[("call_1", "show")]),
        calls("Odd.", "", &[("call|3", "functions.draw")]),
        calls("So.", "A field.", &[]),
    ]
}

async fn prompt(session: &Session, with_picture: bool) -> Outcome {
    let mut content = vec![Content::text("Look around.")];
    content.extend(with_picture.then(picture));
    let result = run_prompt(session, content, PromptOptions::default()).await;
    result.outcome
}

/// Runs a prompt that must finish.
async fn finish(session: &Session, with_picture: bool) {
    let outcome = prompt(session, with_picture).await;
    assert!(matches!(outcome, Outcome::Finished(..)), "{outcome:?}");
}

/// Runs a prompt that is cancelled in the middle of its second response.
async fn run_aborted(world: &PrefixWorld, session: &Session, place: usize) {
    let held = ScriptedResponse {
        ending: Ending::Held,
        ..calls("Slowly.", "It becomes", &[("call_9", "look")])
    };
    let server = &world.servers[place];
    server.play([calls("Again.", "", &[("call_8", "look")]), held]);
    let prompted = prompt(session, false);
    tokio::pin!(prompted);
    tokio::select! {
        outcome = &mut prompted => panic!("{outcome:?}"),
        () = server.held.notified() => {
            session.cancel_prompts();
            prompted.await;
        }
    }
}

/// Returns the signatures in a request, in order.
fn signatures(body: &str) -> Vec<&str> {
    let found = body.match_indices(SIGNATURE);
    found
        .map(|(at, _)| &body[at..at + SIGNATURE.len() + 8])
        .collect()
}

/// Checks that each request brings all reasoning of the model's complete responses before it, in order, and none of other
/// models.
fn check_reasoning(world: &PrefixWorld) {
    for server in &world.servers {
        let requests = server.requests.lock().unwrap();
        let mut own: Vec<&str> = Vec::new();
        for (n, request) in requests.iter().enumerate() {
            let name = server.dialect.model;
            match server.dialect.format {
                ApiFormat::Chat => {
                    let replayed = request.body.matches("reasoning_content").count();
                    assert_eq!(replayed, own.len(), "{name} {n}");
                    assert_eq!(signatures(&request.body), [""; 0], "{name} {n}");
                }
                ApiFormat::Anthropic | ApiFormat::Responses | ApiFormat::Gemini => {
                    assert_eq!(signatures(&request.body), own, "{name} {n}");
                }
            }
            own.extend(request.signature.as_deref());
        }
        assert_eq!(
            own.len(),
            12,
            "two laps with four rounds, an aborted and a last one"
        );
    }
}

async fn switch(session: &Arc<Session>, place: usize) {
    session
        .set_model(&model_name(&DIALECTS[place]))
        .await
        .unwrap();
}

/// Quirks 1 to 36 in a session: Anthropic, Chat, Responses, Gemini, and all of them again.
#[tokio::test]
async fn conversation_goes_on_with_models_of_all_apis() {
    let world = PrefixWorld::new(DIALECTS).await;
    world.set(|settings| {
        settings.compaction.first_turns = 0;
        settings.compaction.recent_turns = 1;
    });
    let mut session = world.create().await;
    for lap in 0..2 {
        for place in [ANTHROPIC, CHAT, RESPONSES, GEMINI] {
            switch(&session, place).await;
            let server = &world.servers[place];
            server.play(rounds());
            finish(&session, true).await;
            run_aborted(&world, &session, place).await;
            server.play([calls("Fine.", "Go on.", &[])]);
            finish(&session, false).await;
            let body = server.bodies().pop().unwrap();
            // A picture of the user and one of a tool for each model so far.
            let pictures = 2 * (4 * lap + place + 1);
            assert_eq!(body.matches("QUJD").count(), pictures, "{place}");
            assert!(!body.contains("It becomes"), "aborted: {body}");
        }
        session = world.reopen(&session).await;
    }
    check_reasoning(&world);
    compact(&world, &session).await;
}

/// A summary drops signed reasoning of Claude, and the conversation goes on everywhere.
async fn compact(world: &PrefixWorld, session: &Arc<Session>) {
    switch(session, ANTHROPIC).await;
    let full = ScriptedResponse {
        usage: (900_000, 5),
        ..calls("Much.", "A lot.", &[])
    };
    world.servers[ANTHROPIC].play([full]);
    finish(session, false).await;
    finish(session, false).await;
    let bodies = world.servers[ANTHROPIC].bodies();
    assert!(bodies[bodies.len() - 2].contains("<conversation>"));
    assert_eq!(signatures(&bodies[bodies.len() - 1]), [""; 0]);
    for place in [CHAT, RESPONSES, GEMINI, ANTHROPIC] {
        switch(session, place).await;
        world.servers[place].play(rounds());
        finish(session, true).await;
    }
}
