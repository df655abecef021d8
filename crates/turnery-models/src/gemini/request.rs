//! Writes requests of `generateContent` directly from the shared history.

use super::{
    generation::{Generation, ThinkingAmount},
    part::PartSignature,
};
use crate::{
    ModelInfo, ModelRequest, Thinking, ToolChoice,
    call_name::accepted_name,
    history::{CallResult, HistoryItem, InputContent, ReasoningScope, build_history},
    http, model_catalogue,
    response_accumulator::args_as_object,
    schema_dialect::DialectSchema,
};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use turnery_engine::{AudioFormat, CallId, Content, ToolSpec};

/// Stands for the signature of a call that another model made:
/// <https://ai.google.dev/gemini-api/docs/thought-signatures#faqs>.
const SKIPPED_SIGNATURE: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerateContentRequest<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<SystemInstruction<'a>>,
    contents: Vec<RequestContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[DeclaredTools<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig>,
    generation_config: GenerationConfig,
}

#[derive(Serialize)]
struct SystemInstruction<'a> {
    parts: [RequestPart<'a>; 1],
}

#[derive(Serialize)]
struct RequestContent<'a> {
    role: &'static str,
    parts: Vec<RequestPart<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RequestPart<'a> {
    Known(KnownPart<'a>),
    Raw(&'a Value),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct KnownPart<'a> {
    #[serde(flatten)]
    data: PartData<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum PartData<'a> {
    Text(Cow<'a, str>),
    InlineData(Blob<'a>),
    FunctionCall(FunctionCallParam<'a>),
    FunctionResponse(FunctionResponse<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct FunctionCallParam<'a> {
    id: &'a CallId,
    name: Cow<'a, str>,
    args: Cow<'a, Value>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    id: &'a CallId,
    name: Cow<'a, str>,
    response: FunctionOutput<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<RequestPart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum FunctionOutput<'a> {
    Output(Cow<'a, str>),
    Error(Cow<'a, str>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeclaredTools<'a> {
    function_declarations: Vec<FunctionDeclaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionDeclaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a DialectSchema,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig {
    function_calling_config: FunctionCallingConfig,
}

#[derive(Serialize)]
struct FunctionCallingConfig {
    mode: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
}

pub(super) fn encode_request(
    info: &ModelInfo,
    has_user_limit: bool,
    request: &ModelRequest,
    schemas: &[DialectSchema],
) -> serde_json::Result<Vec<u8>> {
    let generation = Generation::of(&info.name.model);
    let knows_limit = has_user_limit || model_catalogue::look_up(&info.name.model).is_some();
    let has_system = !request.system.trim().is_empty();
    let mode = match request.tool_choice {
        _ if request.tools.is_empty() => None,
        ToolChoice::Auto => None,
        ToolChoice::None => Some("NONE"),
        ToolChoice::Required => Some("ANY"),
    };
    http::encode_json(&GenerateContentRequest {
        system_instruction: has_system.then(|| SystemInstruction {
            parts: [text_part(Cow::Borrowed(&request.system))],
        }),
        contents: build_contents(info, generation, request),
        tools: (!request.tools.is_empty()).then(|| {
            [DeclaredTools {
                function_declarations: declarations(request, schemas),
            }]
        }),
        tool_config: mode.map(|mode| ToolConfig {
            function_calling_config: FunctionCallingConfig { mode },
        }),
        generation_config: GenerationConfig {
            max_output_tokens: knows_limit.then_some(info.max_output),
            // Other temperatures make these models loop and degrade their reasoning.
            temperature: request.temperature.filter(|_| !generation.is_since_3()),
            thinking_config: thinking_config(info, generation, request.thinking),
        },
    })
}

fn declarations<'a>(
    request: &'a ModelRequest,
    schemas: &'a [DialectSchema],
) -> Vec<FunctionDeclaration<'a>> {
    let tools = request.tools.iter().zip(schemas);
    let declare = |(tool, schema): (&'a ToolSpec, &'a DialectSchema)| FunctionDeclaration {
        name: &tool.name,
        description: &tool.description,
        parameters_json_schema: schema,
    };
    tools.map(declare).collect()
}

/// Returns the thinking parameters. Models that do not think refuse them.
fn thinking_config(
    info: &ModelInfo,
    generation: Generation,
    level: Thinking,
) -> Option<ThinkingConfig> {
    if !info.reasoning {
        return None;
    }
    let (thinking_budget, thinking_level) = match generation.thinking(level, info.max_output)? {
        ThinkingAmount::Default => (None, None),
        ThinkingAmount::Budget(tokens) => (Some(tokens), None),
        ThinkingAmount::Level(level) => (None, Some(level)),
    };
    Some(ThinkingConfig {
        include_thoughts: level != Thinking::Off,
        thinking_budget,
        thinking_level,
    })
}

fn build_contents<'a>(
    info: &ModelInfo,
    generation: Generation,
    request: &'a ModelRequest,
) -> Vec<RequestContent<'a>> {
    let history = build_history(request, info, ReasoningScope::SameModel);
    let mut contents: Vec<RequestContent<'a>> = Vec::with_capacity(history.len() + 1);
    let mut push = |role, parts: Vec<RequestPart<'a>>| {
        // A conversation starts with the user.
        if contents.is_empty() && role == "model" && !parts.is_empty() {
            let text = "(The conversation before this is left out.)";
            contents.push(RequestContent {
                role: "user",
                parts: vec![text_part(Cow::Borrowed(text))],
            });
        }
        if !parts.is_empty() {
            contents.push(RequestContent { role, parts });
        }
    };
    let mut names: Vec<&'a str> = Vec::new();
    for item in history {
        match item {
            HistoryItem::User(parts) => push("user", parts.into_iter().map(input_part).collect()),
            HistoryItem::Assistant(content) => {
                names = content.iter().filter_map(|item| call_name(item)).collect();
                push("model", model_parts(&content, generation));
            }
            HistoryItem::Results(results) => {
                let mut media = Vec::new();
                // Results have the order of the calls.
                let results = results.into_iter().zip(&names);
                let parts = results
                    .map(|(result, name)| function_response(result, name, generation, &mut media))
                    .collect();
                push("user", parts);
                push("user", media);
            }
        }
    }
    contents
}

fn call_name(content: &Content) -> Option<&str> {
    match content {
        Content::ToolCall(call) => Some(&call.name),
        Content::Text { .. }
        | Content::Image(_)
        | Content::Audio(_)
        | Content::Document(_)
        | Content::Thinking { .. }
        | Content::Opaque { .. } => None,
    }
}

/// Returns the name of a called function in a form that the API accepts; it begins with a letter or `_`.
fn function_name(name: &str) -> Cow<'_, str> {
    match name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        true => accepted_name(name, &['.', ':']),
        false => accepted_name(&format!("_{name}"), &['.', ':'])
            .into_owned()
            .into(),
    }
}

/// Returns the parts of a step of the model, each with its signature. The first call of a step must have one.
fn model_parts<'a>(content: &[&'a Content], generation: Generation) -> Vec<RequestPart<'a>> {
    let mut parts = Vec::with_capacity(content.len());
    let mut needs_signature = generation.is_since_3();
    let mut items = content.iter().copied().peekable();
    while let Some(item) = items.next() {
        let signature = items
            .peek()
            .and_then(|next| PartSignature::from_content(next));
        match item {
            Content::Text { text } => {
                let Some(signature) = signature else {
                    parts.push(text_part(Cow::Borrowed(text)));
                    continue;
                };
                let (unsigned, signed) = signature.split_text(text);
                if !unsigned.is_empty() {
                    parts.push(text_part(Cow::Borrowed(unsigned)));
                }
                let signed = PartData::Text(Cow::Borrowed(signed));
                parts.push(signed_part(signed, Some(signature.signature)));
            }
            Content::ToolCall(call) => {
                let skipped = needs_signature.then_some(SKIPPED_SIGNATURE);
                needs_signature = false;
                let call = PartData::FunctionCall(FunctionCallParam {
                    id: &call.call_id,
                    name: function_name(&call.name),
                    args: args_as_object(&call.args),
                });
                // The signature of a text, which was blank and is not sent, is not one of the call before it.
                let signature = signature.filter(|it| it.signed_bytes.is_none());
                let signature = signature.map(|it| it.signature);
                parts.push(signed_part(call, signature.or(skipped)));
            }
            // Unsigned thoughts are summaries for people, which the API ignores.
            Content::Thinking {
                text,
                signature: Some(signature),
            } => parts.push(RequestPart::Known(KnownPart {
                data: PartData::Text(Cow::Borrowed(text)),
                thought: true,
                thought_signature: Some(signature),
            })),
            Content::Opaque { value, .. }
                if PartSignature::from_content(item).is_none() && !is_foreign(value) =>
            {
                parts.push(RequestPart::Raw(value));
            }
            Content::Thinking {
                signature: None, ..
            }
            | Content::Opaque { .. }
            | Content::Image(_)
            | Content::Audio(_)
            | Content::Document(_) => {}
        }
    }
    parts
}

/// Returns true for blocks of other APIs. A provider that is configured to use another API than before keeps its name.
fn is_foreign(value: &Value) -> bool {
    // Blocks of Anthropic Messages and items of Responses have a type, which parts do not; the others are of Chat
    // Completions.
    let is_foreign_key = |key: &String| key == "type" || key.starts_with("reasoning_");
    value
        .as_object()
        .is_none_or(|members| members.keys().any(is_foreign_key))
}

fn signed_part<'a>(data: PartData<'a>, signature: Option<&'a str>) -> RequestPart<'a> {
    RequestPart::Known(KnownPart {
        data,
        thought: false,
        thought_signature: signature,
    })
}

fn text_part(text: Cow<'_, str>) -> RequestPart<'_> {
    signed_part(PartData::Text(text), None)
}

fn inline_part<'a>(mime_type: &'a str, data: &'a str) -> RequestPart<'a> {
    signed_part(PartData::InlineData(Blob { mime_type, data }), None)
}

fn input_part(content: InputContent<'_>) -> RequestPart<'_> {
    match content {
        InputContent::Text(text) => text_part(text),
        // The API refuses this type: <https://ai.google.dev/gemini-api/docs/image-understanding>.
        InputContent::Image(image) if image.mime_type == "image/gif" => {
            let text =
                "[image (image/gif) omitted: this model does not accept images of this type]";
            text_part(Cow::Borrowed(text))
        }
        InputContent::Image(image) => inline_part(&image.mime_type, &image.base64),
        InputContent::Audio(format, audio) => {
            let mime_type = match format {
                AudioFormat::Wav => "audio/wav",
                AudioFormat::Mp3 => "audio/mp3",
            };
            inline_part(mime_type, &audio.base64)
        }
        InputContent::Document(document) => inline_part(&document.mime_type, &document.base64),
    }
}

/// Returns the part with a result. Media that it cannot hold are appended to `media`, for the user content that follows.
fn function_response<'a>(
    result: CallResult<'a>,
    name: &'a str,
    generation: Generation,
    media: &mut Vec<RequestPart<'a>>,
) -> RequestPart<'a> {
    let mut text: Option<Cow<'a, str>> = None;
    let (mut parts, mut others) = (Vec::new(), Vec::new());
    for content in result.content {
        match (content, &mut text) {
            (InputContent::Text(piece), None) => text = Some(piece),
            (InputContent::Text(piece), Some(text)) => {
                let text = text.to_mut();
                text.push_str("\n\n");
                text.push_str(&piece);
            }
            (content, _) if generation.is_since_3() && fits_response(&content) => {
                parts.push(input_part(content));
            }
            (content, _) => others.push(input_part(content)),
        }
    }
    let text = text.unwrap_or(Cow::Borrowed(match others.is_empty() {
        true => "",
        false => "(see the next message)",
    }));
    if !others.is_empty() {
        media.push(text_part(Cow::Owned(format!("Files that {name} gave:"))));
        media.append(&mut others);
    }
    let response = PartData::FunctionResponse(FunctionResponse {
        id: result.call_id,
        name: function_name(name),
        response: match result.is_error {
            true => FunctionOutput::Error(text),
            false => FunctionOutput::Output(text),
        },
        parts,
    });
    signed_part(response, None)
}

/// Returns true for media that results may hold since Gemini 3:
/// <https://ai.google.dev/gemini-api/docs/function-calling#multimodal>.
fn fits_response(content: &InputContent<'_>) -> bool {
    match content {
        InputContent::Image(image) => {
            ["image/png", "image/jpeg", "image/webp"].contains(&image.mime_type.as_str())
        }
        InputContent::Document(_) => true,
        InputContent::Text(_) | InputContent::Audio(..) => false,
    }
}
