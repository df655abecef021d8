//! Parts: events to translate, a queue to look into, and lines read back with the official types.

use crate::{
    news::Takes,
    peer::Peer,
    till::Till,
    translate::Translator,
    update::UpdateWriter,
    writer::{Out, Sender},
};
use agent_client_protocol_schema::v1::SessionNotification;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;
use turnery_engine::{Event, EventKind, LoopId, SessionId, Timestamp};

pub(super) const START: i64 = 1_790_000_000_000;
/// A client that takes everything.
pub(super) const ALL: Takes = Takes {
    notices: true,
    compaction: true,
};
/// A client that takes nothing in particular.
pub(super) const NONE: Takes = Takes {
    notices: false,
    compaction: false,
};

/// An event `after_ms` after the first.
pub(crate) fn event(after_ms: i64, kind: EventKind) -> Event {
    Event {
        session_id: SessionId::from("s1"),
        loop_id: LoopId::from("s1.offline.0"),
        seq: 0,
        turn_index: None,
        at: Timestamp::from_timestamp_millis(START + after_ms).unwrap(),
        kind,
    }
}

/// The updates in these lines. Each line must be what the schema's own types write.
pub(super) fn updates(lines: &[u8]) -> Vec<Value> {
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

/// What a translator says of events that happen now.
pub(super) fn live(events: &[Event]) -> Vec<Value> {
    translate(events, ALL, Translator::live)
}

/// What a translator says of events of an earlier time.
pub(super) fn replayed(events: &[Event]) -> Vec<Value> {
    translate(events, ALL, Translator::replay)
}

pub(super) fn translate(
    events: &[Event],
    takes: Takes,
    show: fn(&mut Translator, &Event, &mut UpdateWriter),
) -> Vec<Value> {
    let mut translator = Translator::new(takes, Till::default());
    let mut writer = UpdateWriter::new("s1");
    for event in events {
        show(&mut translator, event, &mut writer);
    }
    updates(&writer.lines)
}

/// The other end of a peer, played by hand.
pub(super) struct FakeClient {
    pub(super) peer: Arc<Peer>,
    pub(super) lines: mpsc::Receiver<Out>,
}

impl FakeClient {
    pub(super) fn new() -> Self {
        let (sender, lines): (Sender, _) = mpsc::channel(8);
        Self {
            peer: Peer::new(sender),
            lines,
        }
    }

    /// The next message that we sent to the client.
    pub(super) async fn next(&mut self) -> Value {
        match self.lines.recv().await.unwrap() {
            Out::Lines(line) | Out::Large(line, _) => serde_json::from_slice(&line).unwrap(),
            Out::Stop => panic!("nothing stops here"),
        }
    }

    /// The next message, which must be of this method.
    pub(super) async fn expect(&mut self, method: &str) -> Value {
        let message = self.next().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    pub(super) fn answer(&self, asked: &Value, result: Value) {
        self.line(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    }

    pub(super) fn refuse(&self, asked: &Value, code: i64) {
        let error = json!({"code": code, "message": "no"});
        self.line(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error}));
    }

    fn line(&self, message: &Value) {
        let line = message.to_string();
        match crate::envelope::classify(line.as_bytes()) {
            crate::envelope::Envelope::Response { id, reply } => self.peer.answered(&id, reply),
            other => panic!("{other:?}"),
        }
    }
}
