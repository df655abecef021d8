//! Tests of cost limits with models whose price is unknown.

use crate::{
    evaluation::{evaluate, start_evaluation},
    fixture::{EmbeddingFixture, LARGE_CAPACITY, ModelAct, TestModel, yield_while},
};
use std::sync::Arc;
use turnery_agent::{
    Agent, PromptError, PromptOptions, SelectionStrategy, Settings, UnknownPriceError,
};
use turnery_engine::{Content, Limits, Outcome, Price, TurnStop};
use turnery_models::{ModelName, ModelOverride, ModelRegistry};
use turnery_store::MemoryStore;

fn model_name(model: &str) -> ModelName {
    ModelName::new("puppet", model)
}

fn with_cost(most: u64) -> PromptOptions {
    PromptOptions {
        limits: Some(Limits {
            cost: Some(most),
            ..Limits::default()
        }),
        ..PromptOptions::default()
    }
}

/// Models `a` and `b` have no price, `one` has.
fn partly_priced(
    others: &[Arc<TestModel>],
    script: &[&[ModelAct]],
) -> (EmbeddingFixture, Arc<TestModel>) {
    let world = EmbeddingFixture::build(
        Arc::new(MemoryStore::new()),
        script,
        others,
        |_| {},
        |tools| tools,
    );
    let puppet = Arc::clone(&world.model);
    let models = others.iter().fold(
        ModelRegistry::new(Vec::new()).with_model(puppet.clone()),
        |models, other| models.with_model(other.clone()),
    );
    let facts = ModelOverride {
        price: Some(Price {
            input: 1_000_000,
            output: 1_000_000,
            ..Price::default()
        }),
        ..ModelOverride::default()
    };
    let models = models.with_overrides(vec![(model_name("one"), facts)]);
    let settings = Settings::new(model_name("one"), "be good");
    let agent = Agent::new(
        Arc::clone(&world.store),
        Arc::new(models),
        world.agent.toolbox().clone(),
        Arc::new(settings),
    );
    (EmbeddingFixture { agent, ..world }, puppet)
}

// proves: UP-1
#[tokio::test(start_paused = true)]
async fn unknown_price_is_refused_before_the_first_call() {
    let others = [
        TestModel::new("a", &[&[ModelAct::Say("a")]]),
        TestModel::new("b", &[&[ModelAct::Say("b")]]),
    ];
    let (world, puppet) =
        partly_priced(&others, &[&[ModelAct::Say("one")], &[ModelAct::Say("two")]]);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let judged = |name: &str| SelectionStrategy::Judge(Some(model_name(name)));
    for (candidates, pick, unknown) in [
        (["one", "b"], SelectionStrategy::First, "b"),
        (["one", "one"], judged("a"), "a"),
    ] {
        let ticket = start_evaluation(&session, &candidates, pick, with_cost(9));
        let refused = ticket.result().await;
        let model = model_name(unknown);
        assert_eq!(
            refused,
            Err(PromptError::Price(UnknownPriceError { model }))
        );
    }
    for model in others.iter().chain([&puppet]) {
        assert!(model.requests.lock().unwrap().is_empty());
    }
    // Nothing is limited, or all is known.
    let free = evaluate(&session, &["a", "b"], SelectionStrategy::First).await;
    assert!(free.is_ok());
    let ticket = session.prompt(vec![Content::text("go")], with_cost(9));
    assert!(ticket.unwrap().result().await.is_ok());
}

/// The price of the model that answers counts, also of one that is chosen in the middle.
// proves: UP-1
#[tokio::test(start_paused = true)]
async fn model_changed_in_prompt_needs_price() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let others = [TestModel::new("a", &[&[ModelAct::Say("a")]])];
    let script: &[&[ModelAct]] = &[&[ModelAct::Wait(gate.clone()), ModelAct::Call("l", "look")]];
    let (world, puppet) = partly_priced(&others, script);
    let (session, _seen) = world.session(LARGE_CAPACITY).await;
    let ticket = session.prompt(vec![Content::text("go")], with_cost(9));
    yield_while(|| puppet.requests.lock().unwrap().is_empty()).await;
    session.set_model("puppet/a").await.unwrap();
    gate.notify_one();
    let result = ticket.unwrap().result().await.unwrap();
    assert!(others[0].requests.lock().unwrap().is_empty());
    let Outcome::Stopped(stop @ TurnStop::ProviderError(_)) = &result.outcome else {
        panic!("{:?}", result.outcome);
    };
    let text = stop.describe();
    assert!(
        text.starts_with("no price is known for puppet/a, "),
        "{text}"
    );
}
