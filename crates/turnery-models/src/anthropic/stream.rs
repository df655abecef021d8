//! Reads responses of the Messages API: events of consecutive content blocks.

use crate::{
    dialect::{self, StreamError, StreamStatus},
    errors::ProviderError,
    json_str::{FragmentJoiner, JsonStr},
    parallel_calls::{self, strip_tool_name},
    response_accumulator::{ResponseAccumulator, ResponseBlock, value_bytes},
    token_count::{TokenCount, TokenCountError},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use turnery_engine::{CallIds, Content, ModelDelta, ModelStop, Response, ResponseSize, Usage};

/// Any event, as one flat borrowed struct that is deserialized in one pass.
#[derive(Deserialize)]
struct AnthropicEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: JsonStr<'a>,
    #[serde(default)]
    index: u32,
    delta: Option<EventDelta<'a>>,
    content_block: Option<&'a RawValue>,
    message: Option<MessageStart<'a>>,
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct EventDelta<'a> {
    #[serde(borrow)]
    text: Option<JsonStr<'a>>,
    thinking: Option<JsonStr<'a>>,
    signature: Option<JsonStr<'a>>,
    partial_json: Option<JsonStr<'a>>,
    stop_reason: Option<JsonStr<'a>>,
}

#[derive(Deserialize)]
struct MessageStart<'a> {
    #[serde(borrow)]
    id: Option<JsonStr<'a>>,
    model: Option<JsonStr<'a>>,
    usage: Option<&'a RawValue>,
}

/// Start of a content block.
#[derive(Deserialize)]
struct ContentBlockStart<'a> {
    #[serde(rename = "type", borrow)]
    kind: JsonStr<'a>,
    text: Option<JsonStr<'a>>,
    thinking: Option<JsonStr<'a>>,
    signature: Option<JsonStr<'a>>,
    id: Option<JsonStr<'a>>,
    name: Option<JsonStr<'a>>,
    input: Option<&'a RawValue>,
}

/// Token counts. Later counts replace earlier ones, because they are running totals.
#[derive(Default, Deserialize)]
struct AnthropicUsage {
    input_tokens: Option<TokenCount>,
    output_tokens: Option<TokenCount>,
    output_tokens_details: Option<AnthropicOutputDetails>,
    cache_read_input_tokens: Option<TokenCount>,
    cache_creation_input_tokens: Option<TokenCount>,
}

#[derive(Default, Deserialize)]
struct AnthropicOutputDetails {
    thinking_tokens: Option<TokenCount>,
}

/// Usage reports so far.
#[derive(Default)]
enum UsageReports {
    #[default]
    None,
    Known(AnthropicUsage),
    /// A report was malformed.
    Invalid,
}

impl UsageReports {
    fn add(&mut self, raw: &RawValue) {
        let report = match serde_json::from_str::<Option<AnthropicUsage>>(raw.get()) {
            Ok(Some(report)) => report,
            Ok(None) => return,
            Err(_) => return *self = Self::Invalid,
        };
        *self = match std::mem::take(self) {
            Self::None => Self::Known(report),
            Self::Known(before) => Self::Known(AnthropicUsage {
                input_tokens: report.input_tokens.or(before.input_tokens),
                output_tokens: report.output_tokens.or(before.output_tokens),
                output_tokens_details: report
                    .output_tokens_details
                    .or(before.output_tokens_details),
                cache_read_input_tokens: report
                    .cache_read_input_tokens
                    .or(before.cache_read_input_tokens),
                cache_creation_input_tokens: report
                    .cache_creation_input_tokens
                    .or(before.cache_creation_input_tokens),
            }),
            Self::Invalid => Self::Invalid,
        };
    }

    /// Returns the usage; `None` if there was no report or a report was unreadable.
    fn usage(&self) -> Option<Usage> {
        match self {
            Self::None | Self::Invalid => None,
            Self::Known(report) => report.to_usage().ok().map(Usage::normalized),
        }
    }
}

impl AnthropicUsage {
    fn to_usage(&self) -> Result<Usage, TokenCountError> {
        Ok(Usage {
            input: TokenCount::value_or_zero(self.input_tokens)?,
            output: TokenCount::value_or_zero(self.output_tokens)?,
            reasoning: TokenCount::value_or_zero(
                self.output_tokens_details
                    .as_ref()
                    .and_then(|details| details.thinking_tokens),
            )?,
            cache_read: TokenCount::value_or_zero(self.cache_read_input_tokens)?,
            cache_write: TokenCount::value_or_zero(self.cache_creation_input_tokens)?,
        })
    }
}

/// The block that is growing.
enum OpenBlock {
    Text,
    Thinking,
    Call {
        at: usize,
        /// Complete arguments, for servers that send no argument deltas.
        input: Option<String>,
    },
    /// A block of unknown type, with the fragments of its input.
    Opaque {
        at: usize,
        input: String,
    },
}

/// Reader of one response.
pub(crate) struct AnthropicReader {
    provider: String,
    model: String,
    /// Id of the message, once it has started.
    message_id: Option<String>,
    ids: CallIds,
    response: ResponseAccumulator,
    open_block: Option<(u32, OpenBlock)>,
    /// Joins the fragments of the open block.
    joiner: FragmentJoiner,
    usage: UsageReports,
    raw_stop: Option<String>,
    is_finished: bool,
}

impl AnthropicReader {
    pub(super) fn new(provider: &str, model: &str, ids: CallIds) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            message_id: None,
            ids,
            response: ResponseAccumulator::default(),
            open_block: None,
            joiner: FragmentJoiner::default(),
            usage: UsageReports::None,
            raw_stop: None,
            is_finished: false,
        }
    }

    /// Accepts a repeated start of the same message. The start of another message means that two responses are mixed,
    /// so that no call of them may run (quirk 46).
    fn start_message(&mut self, id: Option<&str>) -> Result<(), StreamError> {
        let id = id.unwrap_or_default();
        match &self.message_id {
            Some(first) if first != id => Err(StreamError::Violation(format!(
                "the message {id:?} starts within the message {first:?}"
            ))),
            Some(_) => Ok(()),
            None => {
                self.message_id = Some(id.to_owned());
                Ok(())
            }
        }
    }

    fn start_block(
        &mut self,
        index: u32,
        raw: &RawValue,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        self.finish_block(out);
        self.joiner = FragmentJoiner::default();
        let block: ContentBlockStart<'_> = serde_json::from_str(raw.get())?;
        let open = match &*block.kind {
            "text" => {
                self.open_block = Some((index, OpenBlock::Text));
                self.response.seal_text();
                self.response
                    .append_text(block.text.as_deref().unwrap_or(""), out);
                return Ok(());
            }
            "thinking" => {
                self.response.push_block(ResponseBlock::Thinking {
                    text: String::new(),
                    signature: None,
                });
                self.response
                    .append_thinking(block.thinking.as_deref().unwrap_or(""), out);
                self.append_signature(block.signature.as_deref().unwrap_or(""));
                OpenBlock::Thinking
            }
            "tool_use" => {
                let at = self.response.push_block(ResponseBlock::Call {
                    id: self.ids.take(block.id.as_deref().unwrap_or("")),
                    name: strip_tool_name(block.name.as_deref().unwrap_or("")).to_owned(),
                    args: String::new(),
                });
                let input = block.input.map(|input| input.get().to_owned());
                self.response
                    .count_bytes(input.as_ref().map_or(0, String::len));
                OpenBlock::Call { at, input }
            }
            _ => {
                let value: Value = serde_json::from_str(raw.get())?;
                OpenBlock::Opaque {
                    at: self.response.push_opaque(value),
                    input: String::new(),
                }
            }
        };
        self.open_block = Some((index, open));
        Ok(())
    }

    fn extend_block(
        &mut self,
        index: u32,
        delta: &EventDelta<'_>,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), StreamError> {
        let Some((_, open)) = self.open_block.as_mut().filter(|(open, _)| *open == index) else {
            return Err(StreamError::Violation(format!(
                "a fragment of block {index}, which is not open"
            )));
        };
        let fragment = match open {
            OpenBlock::Text => &delta.text,
            OpenBlock::Thinking => &delta.thinking,
            OpenBlock::Call { .. } | OpenBlock::Opaque { .. } => &delta.partial_json,
        };
        let fragment = fragment.as_ref().map(|text| self.joiner.join(text));
        let fragment = fragment.as_deref().unwrap_or_default();
        match open {
            OpenBlock::Text => self.response.append_text(fragment, out),
            OpenBlock::Thinking => {
                self.response.append_thinking(fragment, out);
                self.append_signature(delta.signature.as_deref().unwrap_or(""));
            }
            OpenBlock::Call { at, .. } => {
                let at = *at;
                self.response.append_args(at, fragment, out);
            }
            OpenBlock::Opaque { input, .. } => {
                self.response.count_bytes(fragment.len());
                input.push_str(fragment);
            }
        }
        Ok(())
    }

    /// Appends to the signature of the current reasoning block.
    fn append_signature(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if let Some(ResponseBlock::Thinking { signature, .. }) = self.response.last_block_mut() {
            signature.get_or_insert_default().push_str(piece);
            self.response.count_bytes(piece.len());
        }
    }

    fn finish_block(&mut self, out: &mut Vec<ModelDelta>) {
        match self.open_block.take() {
            Some((
                _,
                OpenBlock::Call {
                    at,
                    input: Some(input),
                },
            )) => {
                let is_bare = matches!(self.response.block_mut(at), Some(ResponseBlock::Call { args, .. }) if args.is_empty());
                if is_bare && input != "{}" {
                    self.response.append_args(at, &input, out);
                }
            }
            Some((_, OpenBlock::Opaque { at, input })) if !input.is_empty() => {
                let Ok(value) = serde_json::from_str::<Value>(&input) else {
                    return;
                };
                // The fragments are already counted.
                let more = value_bytes(&value).saturating_sub(input.len());
                self.response.count_bytes(more);
                // The whole of a block may also be a list, which has no place for it.
                if let Some(ResponseBlock::Opaque(Value::Object(block))) =
                    self.response.block_mut(at)
                {
                    block.insert("input".to_owned(), value);
                }
            }
            Some((
                _,
                OpenBlock::Text
                | OpenBlock::Thinking
                | OpenBlock::Call { .. }
                | OpenBlock::Opaque { .. },
            ))
            | None => {}
        }
    }
}

impl dialect::ResponseReader for AnthropicReader {
    fn size(&self) -> ResponseSize {
        self.response.size()
    }

    fn on(&mut self, data: &str, out: &mut Vec<ModelDelta>) -> Result<StreamStatus, StreamError> {
        let event: AnthropicEvent<'_> = serde_json::from_str(data)?;
        match &*event.kind {
            "content_block_delta" => {
                if let Some(delta) = &event.delta {
                    self.extend_block(event.index, delta, out)?;
                }
            }
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    self.start_block(event.index, block, out)?;
                }
            }
            "content_block_stop" => self.finish_block(out),
            "message_start" => {
                if let Some(start) = event.message {
                    self.start_message(start.id.as_deref())?;
                    if let Some(model) = start.model {
                        self.model = model.into_owned();
                    }
                    if let Some(usage) = start.usage {
                        self.usage.add(usage);
                    }
                }
            }
            "message_delta" => {
                if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason) {
                    self.raw_stop = Some(reason.into_owned());
                }
                if let Some(usage) = event.usage {
                    self.usage.add(usage);
                }
            }
            "message_stop" => {
                self.is_finished = true;
                return Ok(StreamStatus::Done);
            }
            "error" => {
                return Err(StreamError::Provider(
                    ProviderError::within(data).unwrap_or_default(),
                ));
            }
            // Pings and unknown events, which the API asks clients to ignore.
            _ => {}
        }
        Ok(StreamStatus::More)
    }

    fn end(mut self) -> Result<Response, StreamError> {
        if !self.is_finished {
            return Err(StreamError::Unfinished(
                "there is no message_stop".to_owned(),
            ));
        }
        let Some(raw_stop) = self.raw_stop else {
            return Err(StreamError::Violation(
                "it does not say why it stopped".to_owned(),
            ));
        };
        if let Some(error) = ProviderError::from_stop_reason(&raw_stop) {
            return Err(StreamError::Provider(error));
        }
        let content = self.response.into_content(&self.provider);
        let content = parallel_calls::unpack(content, &mut self.ids);
        let has_calls = content
            .iter()
            .any(|item| matches!(item, Content::ToolCall(_)));
        let stop = ModelStop::from_response(Some(&raw_stop), has_calls, false);
        Ok(Response {
            content,
            stop,
            raw_stop: Some(raw_stop),
            usage: self.usage.usage(),
            model: self.model,
            provider: self.provider,
            tool_results: Vec::new(),
            request: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::ResponseReader as _;
    use serde_json::json;

    /// Returns the counted bytes of a stream with this block.
    fn counted_bytes(block: &Value, fragments: &[&str]) -> u64 {
        let mut reader = AnthropicReader::new("p", "m", CallIds::default());
        let start = json!({"type": "content_block_start", "index": 0, "content_block": block});
        let deltas = fragments.iter().map(|fragment| {
            let delta = json!({"type": "input_json_delta", "partial_json": fragment});
            json!({"type": "content_block_delta", "index": 0, "delta": delta})
        });
        let stop = json!({"type": "content_block_stop", "index": 0});
        for event in [start].into_iter().chain(deltas).chain([stop]) {
            assert!(reader.on(&event.to_string(), &mut Vec::new()).is_ok());
        }
        reader.size().bytes()
    }

    /// Lists are read as structs by position.
    #[test]
    fn block_that_is_a_list_takes_no_input() {
        let block = json!(["x", null, null, null, null, null, null]);
        assert!(counted_bytes(&block, &["1"]) > 0);
    }

    // proves: UP-1
    #[test]
    fn opaque_block_counts_once() {
        let data = "x".repeat(100_000);
        let redacted = json!({"type": "redacted_thinking", "data": data});
        let size = counted_bytes(&redacted, &[]);
        assert!((100_000..101_000).contains(&size), "{size}");
        let called = json!({"type": "server_tool_use", "id": "a", "name": "b", "input": {}});
        let size = counted_bytes(&called, &["{\"query\": \"", &data, "\"}"]);
        assert!((100_000..101_000).contains(&size), "{size}");
    }

    /// Small values take more memory than their text.
    #[test]
    fn opaque_numbers_count_their_memory() {
        let numbers = vec![0; 10_000];
        let block = json!({"type": "new", "data": numbers});
        assert!(counted_bytes(&block, &[]) >= 10_000 * size_of::<Value>() as u64);
    }
}
