//! Asks the user a question of the model, as a form with one field (ELIC-1, ELIC-2).

use crate::client::peer::{Peer, PeerError};
use agent_client_protocol_schema::v1::{
    BooleanPropertySchema, CLIENT_METHOD_NAMES, CreateElicitationRequest, ElicitationFormMode,
    ElicitationMode, ElicitationPropertySchema, ElicitationSchema, ElicitationScope,
    ElicitationSessionScope, MultiSelectPropertySchema, NumberPropertySchema, StringPropertySchema,
    ToolCallId,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use turnery_agent::{AnswerKind, UserAnswer, UserQuestion};
use turnery_tools::escape_invisible;

/// Name of the form's only field.
const ANSWER_FIELD: &str = "answer";

/// Response to `elicitation/create`. Not the schema's type, which rejects unknown actions (ELIC-4).
#[derive(Deserialize)]
pub(crate) struct ElicitationResponse {
    action: String,
    #[serde(default)]
    content: Option<Map<String, Value>>,
}

/// Asks the question and waits without a time limit. Dropping the future cancels the request.
pub(crate) async fn ask_question(peer: &Arc<Peer>, question: UserQuestion) -> UserAnswer {
    let request = encode_question(question);
    let answer = peer
        .request(CLIENT_METHOD_NAMES.elicitation_create, &request)
        .await;
    parse_answer(answer)
}

fn encode_question(question: UserQuestion) -> CreateElicitationRequest {
    let scope = ElicitationSessionScope::new(question.session_id.to_string())
        .tool_call_id(ToolCallId::new(question.call_id.to_string()));
    let field = match question.answer_kind {
        AnswerKind::OneOf(choices) => {
            ElicitationPropertySchema::String(StringPropertySchema::new().enum_values(choices))
        }
        AnswerKind::AnyOf(choices) => {
            ElicitationPropertySchema::Array(MultiSelectPropertySchema::new(choices))
        }
        AnswerKind::Text => ElicitationPropertySchema::String(StringPropertySchema::new()),
        AnswerKind::Number => ElicitationPropertySchema::Number(NumberPropertySchema::new()),
        AnswerKind::Boolean => ElicitationPropertySchema::Boolean(BooleanPropertySchema::new()),
    };
    let schema = ElicitationSchema::new().property(ANSWER_FIELD, field, true);
    let form = ElicitationFormMode::new(ElicitationScope::Session(scope), schema);
    CreateElicitationRequest::new(
        ElicitationMode::Form(form),
        escape_invisible(&question.text),
    )
}

/// Returns true if the user accepted the elicitation that opens the key page (ELIC-4).
pub(crate) fn is_accepted(answer: Result<ElicitationResponse, PeerError>) -> bool {
    match answer {
        Ok(answered) => answered.action == "accept",
        Err(error) => {
            tracing::debug!("the client did not open the key page: {error}");
            false
        }
    }
}

/// Parses the response. Only an `accept` that contains the field is an answer.
fn parse_answer(answer: Result<ElicitationResponse, PeerError>) -> UserAnswer {
    let answered = match answer {
        Ok(answered) => answered,
        Err(error) if error.is_cancelled() => return UserAnswer::Cancelled,
        Err(error) => return UserAnswer::NoAnswer(error.to_string()),
    };
    let field = answered
        .content
        .and_then(|mut all| all.remove(ANSWER_FIELD));
    match (answered.action.as_str(), field) {
        ("accept", Some(value)) => UserAnswer::Answered(value),
        ("accept", None) => UserAnswer::NoAnswer("the form was empty".to_owned()),
        ("decline", _) => UserAnswer::Declined,
        ("cancel", _) => UserAnswer::Cancelled,
        (other, _) => UserAnswer::NoAnswer(format!("the client answered {other:?}")),
    }
}
