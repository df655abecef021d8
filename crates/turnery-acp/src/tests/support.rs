//! Test support: events, a readable write queue, and updates parsed with the official types.

use crate::{
    client::{features::OptionalUpdates, peer::Peer},
    server::{
        acp_version::AcpVersion, connection::Connection, encoder::Encoder,
        prompt_barrier::PromptBarrier,
    },
    transport::{
        update_writer::UpdateWriter,
        writer::{WriteItem, WriteSender},
    },
};
use agent_client_protocol_schema::v1::SessionNotification;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;
use turnery_agent::{
    Agent, OutboxItem, Settings, SettingsError, SettingsResolver, view::SessionView,
};
use turnery_engine::{Event, EventKind, LoopId, SessionId, Timestamp};
use turnery_models::ModelRegistry;
use turnery_tools::Toolbox;

pub(super) const START_MS: i64 = 1_790_000_000_000;
/// Client that supports all optional updates.
pub(super) const ALL_UPDATES: OptionalUpdates = OptionalUpdates {
    notices: true,
    compaction: true,
};
/// Client that supports no optional updates.
pub(super) const NO_OPTIONAL_UPDATES: OptionalUpdates = OptionalUpdates {
    notices: false,
    compaction: false,
};

/// Creates an event `after_ms` after the first.
pub(crate) fn event(after_ms: i64, kind: EventKind) -> Event {
    Event {
        session_id: SessionId::from("s1"),
        loop_id: LoopId::from("s1.offline.0"),
        seq: 0,
        turn_index: None,
        at: Timestamp::from_timestamp_millis(START_MS + after_ms).unwrap(),
        kind,
    }
}

/// A connection of an agent without models.
pub(crate) fn connection(out: WriteSender, barrier: PromptBarrier) -> Connection {
    struct NoSettings;
    impl SettingsResolver for NoSettings {
        fn settings(&self, _: &[std::path::PathBuf]) -> Result<Settings, SettingsError> {
            Err(SettingsError("none".to_owned()))
        }
    }
    let agent = Agent::new(
        Arc::new(turnery_store::MemoryStore::new()),
        Arc::new(ModelRegistry::new(Vec::new())),
        Toolbox::coding(),
        Arc::new(NoSettings),
    );
    Connection::new(Arc::new(agent), Peer::new(out), barrier)
}

/// Parses the updates in these lines. Each line must equal what the schema's types write.
pub(super) fn parse_updates(lines: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(lines).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    text.lines()
        .map(|line| {
            let message: Value = serde_json::from_str(line).unwrap();
            assert_eq!(message["jsonrpc"], "2.0");
            assert_eq!(message["method"], "session/update");
            assert_eq!(message.as_object().unwrap().len(), 3);
            let params = &message["params"];
            let typed: SessionNotification = serde_json::from_value(params.clone()).unwrap();
            assert_eq!(&serde_json::to_value(typed).unwrap(), params);
            assert_eq!(params["sessionId"], "s1");
            params["update"].clone()
        })
        .collect()
}

/// Encodes events live.
pub(super) fn encode_live(events: &[Event]) -> Vec<Value> {
    encode(events, ALL_UPDATES, live)
}

/// Encodes events as a replay.
pub(super) fn encode_replayed(events: &[Event]) -> Vec<Value> {
    encode(events, ALL_UPDATES, stored)
}

pub(super) fn encode(
    events: &[Event],
    optional_updates: OptionalUpdates,
    item: fn(&Event) -> OutboxItem<'_>,
) -> Vec<Value> {
    let encoder = Encoder::new(AcpVersion::V1, optional_updates);
    parse_updates(&encode_lines(events, encoder, item))
}

pub(crate) fn encode_lines(
    events: &[Event],
    mut encoder: Encoder,
    item: fn(&Event) -> OutboxItem<'_>,
) -> Vec<u8> {
    let mut view = SessionView::default();
    let mut writer = UpdateWriter::new("s1");
    for event in events {
        view.apply(item(event), &mut |change| {
            encoder.encode(change, &mut writer);
        });
    }
    writer.lines
}

pub(crate) fn live(event: &Event) -> OutboxItem<'_> {
    OutboxItem::Live(event)
}

pub(crate) fn stored(event: &Event) -> OutboxItem<'_> {
    OutboxItem::Replay(event)
}

/// The client side of a peer, controlled by the test.
pub(super) struct FakeClient {
    pub(super) peer: Arc<Peer>,
    pub(super) lines: mpsc::Receiver<WriteItem>,
}

impl FakeClient {
    pub(super) fn new() -> Self {
        let (sender, lines): (WriteSender, _) = mpsc::channel(8);
        Self {
            peer: Peer::new(sender),
            lines,
        }
    }

    /// Returns the next message sent to the client.
    pub(super) async fn next_message(&mut self) -> Value {
        match self.lines.recv().await.unwrap() {
            WriteItem::Lines(line) | WriteItem::Awaited(line, _) => {
                serde_json::from_slice(&line).unwrap()
            }
            WriteItem::Stop => panic!("nothing stops here"),
        }
    }

    /// Returns the next message, which must have this method.
    pub(super) async fn expect_method(&mut self, method: &str) -> Value {
        let message = self.next_message().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    pub(super) fn respond(&self, asked: &Value, result: Value) {
        self.deliver_response(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    }

    pub(super) fn respond_error(&self, asked: &Value, code: i64) {
        let error = json!({"code": code, "message": "no"});
        self.deliver_response(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
    }

    fn deliver_response(&self, message: &Value) {
        let line = message.to_string();
        match crate::server::envelope::classify_line(line.as_bytes()) {
            crate::server::envelope::Envelope::Response { id, result: reply } => {
                self.peer.handle_response(&id, reply)
            }
            other => panic!("{other:?}"),
        }
    }
}
