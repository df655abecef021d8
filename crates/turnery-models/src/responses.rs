//! Implements OpenAI Responses, always streaming and without state on the server:
//! <https://platform.openai.com/docs/api-reference/responses>.

mod call_id;
mod effort;
mod event;
mod input;
mod request;
mod stream;
mod usage;

use crate::{
    dialect::{ApiDescriptor, ApiDialect},
    model::{ModelInfo, ModelRequest},
    openai::quirks::LimitField,
    providers,
    schema_dialect::{DialectSchema, SchemaDialect},
};
use turnery_engine::CallIds;

/// Dialect of Responses.
pub(crate) struct Responses {
    host: ResponsesHost,
}

/// Deviations of a server from the common ground.
#[derive(Clone, Copy, Debug)]
struct ResponsesHost {
    output_limit: OutputLimit,
    enforces_schemas: bool,
    /// True if the server rejects a response in which text or reasoning follows a call (quirk 60).
    groups_calls: bool,
}

/// Condition under which the output limit of a model is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputLimit {
    /// The user chose it.
    Always,
    /// The server accepts the limits of the catalogue.
    IfKnown,
    /// The server applies its own.
    Never,
}

impl Responses {
    /// Creates the dialect for the server at `base_url`. If the user chose the output limit, it is sent.
    pub(crate) fn new(base_url: &str, has_user_limit: bool) -> Self {
        let is_openai = providers::is_openai_at(base_url);
        let limit = providers::quirks_at(base_url, "").limit;
        let output_limit = match (has_user_limit, limit) {
            (true, _) => OutputLimit::Always,
            (false, LimitField::MaxCompletionTokens | LimitField::MaxTokens) => {
                OutputLimit::IfKnown
            }
            (false, LimitField::Omitted) => OutputLimit::Never,
        };
        Self {
            host: ResponsesHost {
                output_limit,
                enforces_schemas: is_openai || providers::enforces_schemas_at(base_url),
                groups_calls: providers::groups_calls_at(base_url),
            },
        }
    }
}

impl ApiDialect for Responses {
    type Reader = stream::ResponsesReader;
    /// Responses below a base URL that ends in `/v1`.
    const API: ApiDescriptor = ApiDescriptor {
        record_name: "openai_responses",
        path: "/responses",
        models_path: "/models",
        key_header: ("authorization", "Bearer "),
        headers: &[],
        takes_audio: false,
    };

    fn schema_dialect(&self, _: &str) -> SchemaDialect {
        SchemaDialect::OpenAi
    }

    fn body(
        &self,
        info: &ModelInfo,
        request: &ModelRequest,
        schemas: &[DialectSchema],
    ) -> serde_json::Result<Vec<u8>> {
        request::encode_request(info, self.host, request, schemas)
    }

    fn reader(&self, info: &ModelInfo, ids: CallIds) -> stream::ResponsesReader {
        stream::ResponsesReader::new(&info.name.provider, &info.name.model, ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ModelName, Thinking};
    use serde_json::{Value, json};
    use std::sync::Arc;
    use turnery_engine::{Content, DocumentData, LlmMessage, Message, MessageStop, ToolCall};

    /// Returns the request body that the server at `url` receives, with a document in the prompt.
    fn body(url: &str, has_user_limit: bool, model: &str) -> Value {
        let document = Content::Document(DocumentData {
            name: "a.pdf".to_owned(),
            mime_type: "application/pdf".to_owned(),
            base64: "JVBE".into(),
        });
        let content = vec![document];
        body_of(url, has_user_limit, model, Message::User { content })
    }

    /// Returns the request body for a conversation of one message.
    fn body_of(url: &str, has_user_limit: bool, model: &str, message: Message) -> Value {
        let mut info = ModelInfo::new(ModelName::new("p", model), "openai_responses");
        info.documents = true;
        info.max_output = 900;
        let mut request =
            ModelRequest::single_question("s".into(), "", "m", String::new(), Thinking::Default);
        request.messages = Arc::new(vec![Arc::new(LlmMessage {
            message_id: "m".into(),
            turn_id: None,
            message,
        })]);
        let body = Responses::new(url, has_user_limit).test_body(&info, &request);
        serde_json::from_slice(&body).unwrap()
    }

    /// Reasoning or text after a call ends its group of calls for DeepSeek: pydantic/pydantic-ai#7448.
    // proves: RESPONSES-60
    #[test]
    fn calls_are_grouped_for_deepseek_only() {
        let reasoning = |text: &str| Content::Opaque {
            provider: "p".to_owned(),
            value: json!({"type": "reasoning", "summary": [], "encrypted_content": text}),
        };
        let call = |id: &str| Content::ToolCall(ToolCall::new(id, "read", json!({})));
        let response = Message::Assistant {
            content: vec![
                reasoning("1"),
                call("a"),
                reasoning("2"),
                call("b"),
                Content::text("so"),
            ],
            stop: MessageStop::ToolUse,
            model: "deepseek-v4-pro".to_owned(),
            provider: "p".to_owned(),
            usage: None,
            error: None,
            request: None,
        };
        for (url, expected) in [
            (
                "https://api.deepseek.com/v1",
                ["reasoning", "reasoning", "message", "a", "b", "a", "b"],
            ),
            (
                "https://api.openai.com/v1",
                ["reasoning", "a", "reasoning", "b", "message", "a", "b"],
            ),
        ] {
            let body = body_of(url, false, "deepseek-v4-pro", response.clone());
            let items = body["input"].as_array().unwrap().iter();
            let kinds = items.map(|item| item["call_id"].as_str().or(item["type"].as_str()));
            let kinds: Vec<&str> = kinds.flatten().collect();
            assert_eq!(kinds, expected, "{url}");
        }
    }

    // proves: RESPONSES-77
    #[test]
    fn document_is_sent_as_a_file() {
        assert_eq!(
            body("https://api.openai.com/v1", false, "gpt-5")["input"],
            json!([{"type": "message", "role": "user", "content": [
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
            ]}])
        );
    }

    // proves: RESPONSES-82
    #[test]
    fn output_limit_is_sent_if_known_or_chosen() {
        let openai = "https://api.openai.com/v1";
        let azure = "https://h.openai.azure.com/openai/v1";
        let local = "http://127.0.0.1:8080/v1";
        for (url, is_chosen, model, sent) in [
            (openai, false, "gpt-5", json!(900)),
            (openai, false, "new", json!(null)),
            (openai, true, "new", json!(900)),
            (azure, false, "gpt-5", json!(900)),
            (local, false, "gpt-oss-20b", json!(null)),
            (local, true, "gpt-oss-20b", json!(900)),
        ] {
            let limit = &body(url, is_chosen, model)["max_output_tokens"];
            assert_eq!(*limit, sent, "{url} {is_chosen} {model}");
        }
    }
}
