//! Elicitation: puts a question of the model's to the person, as a form of one field (ELIC-1, ELIC-2).

use crate::peer::{Peer, PeerError};
use agent_client_protocol_schema::v1::{
    BooleanPropertySchema, CLIENT_METHOD_NAMES, CreateElicitationRequest, ElicitationFormMode,
    ElicitationMode, ElicitationPropertySchema, ElicitationSchema, ElicitationScope,
    ElicitationSessionScope, MultiSelectPropertySchema, NumberPropertySchema, StringPropertySchema,
    ToolCallId,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use turnery_agent::{Question, Reply, Wanted};
use turnery_tools::visible;

/// The one field of the form.
const FIELD: &str = "answer";

/// Read by hand, so that an action nobody knows is told apart (ELIC-4).
#[derive(Deserialize)]
pub(crate) struct Answered {
    action: String,
    #[serde(default)]
    content: Option<Map<String, Value>>,
}

/// Ask, and wait as long as it takes. Dropping the future takes the question back.
pub(crate) async fn ask(peer: &Arc<Peer>, question: Question) -> Reply {
    let request = to_wire(question);
    let answer = peer
        .request(CLIENT_METHOD_NAMES.elicitation_create, &request)
        .await;
    from_wire(answer)
}

fn to_wire(question: Question) -> CreateElicitationRequest {
    let scope = ElicitationSessionScope::new(question.session_id.to_string())
        .tool_call_id(ToolCallId::new(question.call_id.to_string()));
    let field = match question.answer {
        Wanted::One(choices) => {
            ElicitationPropertySchema::String(StringPropertySchema::new().enum_values(choices))
        }
        Wanted::Some(choices) => {
            ElicitationPropertySchema::Array(MultiSelectPropertySchema::new(choices))
        }
        Wanted::Text => ElicitationPropertySchema::String(StringPropertySchema::new()),
        Wanted::Number => ElicitationPropertySchema::Number(NumberPropertySchema::new()),
        Wanted::Boolean => ElicitationPropertySchema::Boolean(BooleanPropertySchema::new()),
    };
    let schema = ElicitationSchema::new().property(FIELD, field, true);
    let form = ElicitationFormMode::new(ElicitationScope::Session(scope), schema);
    CreateElicitationRequest::new(ElicitationMode::Form(form), visible(&question.text))
}

/// Whether the person agrees to open what they were sent to (ELIC-4).
pub(crate) fn is_accepted(answer: Result<Answered, PeerError>) -> bool {
    match answer {
        Ok(answered) => answered.action == "accept",
        Err(error) => {
            tracing::debug!("nobody was sent to a page: {error}");
            false
        }
    }
}

/// Only an `accept` with the field in it is an answer.
fn from_wire(answer: Result<Answered, PeerError>) -> Reply {
    let answered = match answer {
        Ok(answered) => answered,
        Err(error) if error.is_cancelled() => return Reply::Cancelled,
        Err(error) => return Reply::NoAnswer(error.to_string()),
    };
    let field = answered.content.and_then(|mut all| all.remove(FIELD));
    match (answered.action.as_str(), field) {
        ("accept", Some(value)) => Reply::Given(value),
        ("accept", None) => Reply::NoAnswer("the form came back empty".to_owned()),
        ("decline", _) => Reply::Declined,
        ("cancel", _) => Reply::Cancelled,
        (other, _) => Reply::NoAnswer(format!("the client answered {other:?}")),
    }
}
