//! A client that does not read still cancels its prompts.

use crate::harness::{TestClient, TestEnv, error_code_of};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::{
    sync::{Arc, mpsc},
    time::Duration,
};
use turnery_acp::ServeOptions;
use turnery_engine::{ModelDelta, ModelError, Response};
use turnery_models::{Model, ModelEventSender, ModelInfo, ModelRequest};

/// Sign of life of an [`EndlessModel`].
#[derive(Debug, PartialEq)]
enum ModelSign {
    /// 200 pieces were sent.
    Flowing,
    /// The call was dropped.
    Stopped,
}

/// Model that streams 4 KB pieces until it is dropped.
struct EndlessModel {
    info: ModelInfo,
    signs: mpsc::Sender<ModelSign>,
}

struct CallGuard(mpsc::Sender<ModelSign>);

impl Drop for CallGuard {
    fn drop(&mut self) {
        let _ = self.0.send(ModelSign::Stopped);
    }
}

impl Model for EndlessModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn call(
        &self,
        _request: ModelRequest,
        out: ModelEventSender,
    ) -> BoxFuture<'_, Result<Response, ModelError>> {
        Box::pin(async move {
            let guard = CallGuard(self.signs.clone());
            for n in 0.. {
                if n == 200 {
                    let _ = guard.0.send(ModelSign::Flowing);
                }
                let (block, text) = (n % 2, "x".repeat(4_000));
                // Waiting pieces of one kind would be joined.
                out.send_delta(match block {
                    0 => ModelDelta::Text { block, text },
                    _ => ModelDelta::Thinking { block, text },
                })
                .await;
            }
            unreachable!("it is stopped")
        })
    }
}

/// The stream of a prompt fills the queue and stops; 220 responses wait behind it; and a cancel is heard nevertheless.
// proves: C-10
#[test]
fn cancel_is_heard_while_nothing_is_read() {
    let world = TestEnv::without_answers();
    let (signs, told) = mpsc::channel();
    let info = ModelInfo {
        name: "test/endless".parse().expect("a name"),
        display_name: "Endless".to_owned(),
        context_window: None,
        max_output: 100,
        images: false,
        audio: false,
        documents: false,
        reasoning: true,
        api: "test",
        base_url: None,
    };
    let agent = world.agent_with_model(Arc::new(EndlessModel { info, signs }));
    let mut client = TestClient::connect_without_reading(agent, ServeOptions::default());
    client.start_reading_on_demand();
    client.initialize(json!({}));
    let id = client.new_session(world.new_session_params());
    let asked = client.send_prompt(&id, "go");
    let next = || told.recv_timeout(Duration::from_secs(60));
    assert_eq!(next(), Ok(ModelSign::Flowing));
    // More than one read takes, so that the cancel is not in the same block.
    let padding = json!({"x": "x".repeat(1_000)});
    let requests: Vec<Value> = (0..220)
        .map(|_| client.send_request("_unknown", padding.clone()))
        .collect();
    client.cancel(&id);
    assert_eq!(next(), Ok(ModelSign::Stopped));
    assert_eq!(client.wait_for_stop_reason(&asked), "cancelled");
    for request in requests {
        assert_eq!(error_code_of(&client.wait_for_response(&request)), -32601);
    }
}
