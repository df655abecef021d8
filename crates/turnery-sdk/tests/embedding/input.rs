//! Tests of prompt input and of its conversion errors.

use crate::{
    fixture::{World, finished, run_hello},
    toy::ToyStep,
};
use turnery_engine::{Content, ImageData, LoopStatus, Outcome, TurnStop, Usage};
use turnery_models::ModelName;
use turnery_sdk::{
    ActivityEvent, ImageBlob, InputError, InputItem, PromptInput, SelectionStrategy,
    SessionExt as _,
};

fn png() -> ImageBlob {
    ImageBlob {
        mime_type: "image/png".to_owned(),
        bytes: b"\x89PNG\r\n".to_vec(),
    }
}

fn image_content() -> Content {
    Content::Image(ImageData {
        mime_type: "image/png".to_owned(),
        base64: "iVBORw0K".into(),
    })
}

// proves: LASH-37, LASH-38, LASH-39, LASH-40, LASH-41
#[test]
fn input_items_keep_order_and_text() {
    let input = PromptInput::text("what is in @/etc/passwd and here:")
        .image("shot-1", png())
        .image("shot-2", png());
    let content = input.into_content().unwrap();
    let text = Content::text("what is in @/etc/passwd and here:");
    assert_eq!(content, [text, image_content(), image_content()]);
    // One image twice, and one that is not referenced.
    let mut input = PromptInput::default().image("a", png());
    input.items.push(InputItem::Text("and again".to_owned()));
    input.items.push(InputItem::ImageRef("a".to_owned()));
    input.image_blobs.insert("b".to_owned(), png());
    let content = input.into_content().unwrap();
    assert_eq!(
        content,
        [image_content(), Content::text("and again"), image_content()]
    );
}

fn input_error(items: Vec<InputItem>) -> InputError {
    let mut input = PromptInput {
        items,
        ..PromptInput::default()
    };
    input.image_blobs.insert("here".to_owned(), png());
    let text = ImageBlob {
        mime_type: "text/plain".to_owned(),
        bytes: b"hello".to_vec(),
    };
    input.image_blobs.insert("text".to_owned(), text);
    let nothing = ImageBlob {
        bytes: Vec::new(),
        ..png()
    };
    input.image_blobs.insert("nothing".to_owned(), nothing);
    input.into_content().unwrap_err()
}

// proves: LASH-16, LASH-41
#[test]
fn invalid_image_is_a_typed_error() {
    let image = |name: &str| input_error(vec![InputItem::ImageRef(name.to_owned())]).to_string();
    assert_eq!(
        image("there"),
        "the input refers to the image \"there\", which is missing: add it to image_blobs"
    );
    for malformed in ["", "two words", "line\nbreak", &"x".repeat(257)] {
        assert!(image(malformed).contains("is not a valid image name"));
    }
    assert_eq!(
        image("text"),
        "the image \"text\" is of type \"text/plain\" and 5 bytes long, which is not a valid image"
    );
    assert!(image("nothing").contains("0 bytes long"));
    assert_eq!(input_error(Vec::new()), InputError::Empty);
    assert_eq!(
        input_error(vec![InputItem::Text(String::new())]),
        InputError::Empty
    );
}

// proves: LASH-37, LASH-43
#[tokio::test(start_paused = true)]
async fn image_bytes_reach_the_model() {
    let say = |text| vec![ToyStep::Say(text)];
    let world = World::new(["a cat", "hi", "hi again"].map(say).to_vec());
    let session = world.session().await;
    let prompt = session.new_prompt(PromptInput::text("who is this?"));
    prompt.image("cat", png()).run().await.unwrap();
    run_hello(&session).await;
    session.close().await;
    run_hello(&world.reopen(&session).await).await;
    let requests = world.toy.requests.lock().unwrap();
    assert_eq!(requests.len(), 3);
    for request in &*requests {
        let turnery_engine::Message::User { content } = &request.messages[0].message else {
            unreachable!("the first message is the user's")
        };
        assert_eq!(*content, [Content::text("who is this?"), image_content()]);
    }
}

// proves: LASH-16, C-7, I13, LASH-29
#[tokio::test(start_paused = true)]
async fn invalid_input_ends_as_invalid_input_outcome() {
    let world = World::new(vec![vec![ToyStep::Say("fine")]]);
    let session = world.session().await;
    let mut input = PromptInput::text("who is this?");
    input.items.push(InputItem::ImageRef("cat".to_owned()));
    let output = session.new_prompt(input.clone()).run().await.unwrap();
    let reason =
        "the input refers to the image \"cat\", which is missing: add it to image_blobs".to_owned();
    let outcome = Outcome::Stopped(TurnStop::InvalidInput {
        reason: reason.clone(),
    });
    assert_eq!(output.result.outcome, outcome);
    let text = reason.as_str().into();
    let shown: Vec<_> = output.activities.into_iter().map(|it| it.event).collect();
    assert_eq!(shown, [ActivityEvent::Error { text }]);
    let records = world.records(&session).await;
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].status, LoopStatus::Rejected);
    assert_eq!(records[0].rejection, Some(reason));
    assert_eq!(records[0].outcome, Some(outcome.clone()));
    assert_eq!(records[0].usage, Usage::default());
    assert!(records[0].messages.is_empty());
    assert!(!records[0].on_chain);
    assert!(world.traced_calls().is_empty());
    let malformed = PromptInput::default().image("two words", png());
    let output = session.new_prompt(malformed).run().await.unwrap();
    let Outcome::Stopped(TurnStop::InvalidInput { reason }) = output.result.outcome else {
        panic!("{:?}", output.result.outcome)
    };
    assert_eq!(
        reason,
        "\"two words\" is not a valid image name: use 1 to 256 characters without spaces"
    );
    let records = world.records(&session).await;
    assert_eq!(records[1].status, LoopStatus::Rejected);
    assert!(world.traced_calls().is_empty());
    // Nothing of them is in the next prompt.
    let next = run_hello(&session).await;
    assert_eq!(next.result.outcome, finished("fine"));
    {
        let requests = world.toy.requests.lock().unwrap();
        assert_eq!(requests[0].messages.len(), 1);
        assert_eq!(requests[0].messages[0].message.text(), "hello");
    }
    // Each loop of a branch and of an evaluation is rejected too.
    let from = next.result.loops[0].loop_id.clone();
    let candidates = ["toy/one", "toy/two"].map(|it| it.parse::<ModelName>().unwrap().into());
    let strategy = SelectionStrategy::First;
    for prompt in [
        session.new_branch(from, input.clone()),
        session.new_evaluation(input, candidates.to_vec(), strategy),
    ] {
        assert_eq!(prompt.run().await.unwrap().result.outcome, outcome);
    }
    let records = world.records(&session).await;
    let rejected = records
        .iter()
        .filter(|it| it.outcome.as_ref() == Some(&outcome));
    let statuses: Vec<LoopStatus> = rejected.map(|it| it.status).collect();
    assert_eq!(statuses, [LoopStatus::Rejected; 4]);
    assert_eq!((records.len(), world.traced_calls().len()), (6, 1));
}
