//! The answer of the Messages API: events of content blocks, which come one after the other.

use crate::{
    answer::{CallIds, Part, Parts},
    fault::Said,
    remote::{self, Broken, Step},
    text::Text,
    tokens::{Tokens, Unreadable},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use turnery_engine::{AnswerSize, ModelDelta, ModelStop, Response, Usage};

/// Any event: one flat shape, borrowed, so that a fragment is read without a detour.
#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(default)]
    index: u32,
    #[serde(default, borrow)]
    delta: Option<Delta<'a>>,
    #[serde(default, borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(default, borrow)]
    message: Option<Start<'a>>,
    #[serde(default, borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default, borrow)]
    text: Option<Text<'a>>,
    #[serde(default, borrow)]
    thinking: Option<Text<'a>>,
    #[serde(default, borrow)]
    signature: Option<Text<'a>>,
    #[serde(default, borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(default, borrow)]
    stop_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Start<'a> {
    #[serde(default, borrow)]
    model: Option<Text<'a>>,
    #[serde(default, borrow)]
    usage: Option<&'a RawValue>,
}

/// How a content block begins.
#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(default, borrow)]
    text: Option<Text<'a>>,
    #[serde(default, borrow)]
    thinking: Option<Text<'a>>,
    #[serde(default, borrow)]
    signature: Option<Text<'a>>,
    #[serde(default, borrow)]
    id: Option<Text<'a>>,
    #[serde(default, borrow)]
    name: Option<Text<'a>>,
    #[serde(default, borrow)]
    input: Option<&'a RawValue>,
}

/// Later counts replace earlier ones: they are running totals.
#[derive(Default, Deserialize)]
struct WireUsage {
    input_tokens: Option<Tokens>,
    output_tokens: Option<Tokens>,
    cache_read_input_tokens: Option<Tokens>,
    cache_creation_input_tokens: Option<Tokens>,
}

/// The usage reports so far.
#[derive(Default)]
enum Reports {
    #[default]
    None,
    Known(WireUsage),
    /// One of them is no usage report.
    Unreadable,
}

impl Reports {
    fn add(&mut self, raw: &RawValue) {
        let report = match serde_json::from_str::<Option<WireUsage>>(raw.get()) {
            Ok(Some(report)) => report,
            Ok(None) => return,
            Err(_) => return *self = Self::Unreadable,
        };
        *self = match std::mem::take(self) {
            Self::None => Self::Known(report),
            Self::Known(before) => Self::Known(WireUsage {
                input_tokens: report.input_tokens.or(before.input_tokens),
                output_tokens: report.output_tokens.or(before.output_tokens),
                cache_read_input_tokens: report
                    .cache_read_input_tokens
                    .or(before.cache_read_input_tokens),
                cache_creation_input_tokens: report
                    .cache_creation_input_tokens
                    .or(before.cache_creation_input_tokens),
            }),
            Self::Unreadable => Self::Unreadable,
        };
    }

    /// The usage; `None` when there was no report or not all of it can be read.
    fn usage(&self) -> Option<Usage> {
        match self {
            Self::None | Self::Unreadable => None,
            Self::Known(report) => report.usage().ok(),
        }
    }
}

impl WireUsage {
    fn usage(&self) -> Result<Usage, Unreadable> {
        Ok(Usage {
            input: Tokens::or_zero(self.input_tokens)?,
            output: Tokens::or_zero(self.output_tokens)?,
            reasoning: 0,
            cache_read: Tokens::or_zero(self.cache_read_input_tokens)?,
            cache_write: Tokens::or_zero(self.cache_creation_input_tokens)?,
        })
    }
}

/// The block that is growing.
enum Open {
    Text,
    Thinking,
    Call {
        at: usize,
        /// The whole arguments, for servers that send no fragments of them.
        input: Option<String>,
    },
    /// A block of a kind that is not known, with the fragments of its input.
    Opaque {
        at: usize,
        input: String,
    },
}

/// Reads one answer.
pub(crate) struct Reader {
    provider: String,
    model: String,
    ids: CallIds,
    parts: Parts,
    open: Option<(u32, Open)>,
    usage: Reports,
    raw_stop: Option<String>,
    is_over: bool,
}

impl Reader {
    pub(super) fn new(provider: &str, model: &str, ids: CallIds) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            ids,
            parts: Parts::default(),
            open: None,
            usage: Reports::None,
            raw_stop: None,
            is_over: false,
        }
    }

    fn start(
        &mut self,
        index: u32,
        raw: &RawValue,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), Broken> {
        self.stop(out);
        let block: Block<'_> = serde_json::from_str(raw.get())?;
        let open = match &*block.kind {
            "text" => {
                self.open = Some((index, Open::Text));
                self.parts.seal();
                self.parts.text(block.text.as_deref().unwrap_or(""), out);
                return Ok(());
            }
            "thinking" => {
                self.parts.open(Part::Thinking {
                    text: String::new(),
                    signature: None,
                });
                self.parts
                    .thinking(block.thinking.as_deref().unwrap_or(""), out);
                self.sign(block.signature.as_deref().unwrap_or(""));
                Open::Thinking
            }
            "tool_use" => {
                let at = self.parts.open(Part::Call {
                    id: self.ids.take(block.id.as_deref().unwrap_or("")),
                    name: block.name.as_deref().unwrap_or("").to_owned(),
                    args: String::new(),
                });
                let input = block.input.map(|input| input.get().to_owned());
                self.parts.count(input.as_ref().map_or(0, String::len));
                Open::Call { at, input }
            }
            _ => {
                let value: Value = serde_json::from_str(raw.get())?;
                self.parts.count(size_of_value(&value));
                let at = self.parts.open(Part::Opaque(value));
                Open::Opaque {
                    at,
                    input: String::new(),
                }
            }
        };
        self.open = Some((index, open));
        Ok(())
    }

    fn grow(
        &mut self,
        index: u32,
        delta: &Delta<'_>,
        out: &mut Vec<ModelDelta>,
    ) -> Result<(), Broken> {
        let Some((_, open)) = self.open.as_mut().filter(|(open, _)| *open == index) else {
            return Err(Broken::Promise(format!(
                "a fragment of block {index}, which is not open"
            )));
        };
        match open {
            Open::Text => self.parts.text(delta.text.as_deref().unwrap_or(""), out),
            Open::Thinking => {
                self.parts
                    .thinking(delta.thinking.as_deref().unwrap_or(""), out);
                self.sign(delta.signature.as_deref().unwrap_or(""));
            }
            Open::Call { at, .. } => {
                let at = *at;
                self.parts
                    .args(at, delta.partial_json.as_deref().unwrap_or(""), out);
            }
            Open::Opaque { input, .. } => {
                let fragment = delta.partial_json.as_deref().unwrap_or("");
                self.parts.count(fragment.len());
                input.push_str(fragment);
            }
        }
        Ok(())
    }

    /// The provider's proof of the reasoning so far.
    fn sign(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if let Some(Part::Thinking { signature, .. }) = self.parts.last() {
            signature.get_or_insert_default().push_str(piece);
            self.parts.count(piece.len());
        }
    }

    fn stop(&mut self, out: &mut Vec<ModelDelta>) {
        match self.open.take() {
            Some((
                _,
                Open::Call {
                    at,
                    input: Some(input),
                },
            )) => {
                let is_bare =
                    matches!(self.parts.get(at), Some(Part::Call { args, .. }) if args.is_empty());
                if is_bare && input != "{}" {
                    self.parts.args(at, &input, out);
                }
            }
            Some((_, Open::Opaque { at, input })) if !input.is_empty() => {
                let Ok(value) = serde_json::from_str::<Value>(&input) else {
                    return;
                };
                // Its text is counted already.
                let more = size_of_value(&value).saturating_sub(input.len());
                self.parts.count(more);
                if let Some(Part::Opaque(block)) = self.parts.get(at) {
                    block["input"] = value;
                }
            }
            Some((_, Open::Text | Open::Thinking | Open::Call { .. } | Open::Opaque { .. }))
            | None => {}
        }
    }
}

/// The memory that a JSON value takes. Unit: bytes.
fn size_of_value(value: &Value) -> usize {
    let content = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size_of_value).sum(),
        Value::Object(members) => {
            let size = |(name, value): (&String, &Value)| name.len() + size_of_value(value);
            members.iter().map(size).sum()
        }
    };
    size_of::<Value>() + content
}

impl remote::Reader for Reader {
    fn size(&self) -> AnswerSize {
        self.parts.size()
    }

    fn on(&mut self, data: &str, out: &mut Vec<ModelDelta>) -> Result<Step, Broken> {
        let event: Event<'_> = serde_json::from_str(data)?;
        match &*event.kind {
            "content_block_delta" => {
                if let Some(delta) = &event.delta {
                    self.grow(event.index, delta, out)?;
                }
            }
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    self.start(event.index, block, out)?;
                }
            }
            "content_block_stop" => self.stop(out),
            "message_start" => {
                if let Some(start) = event.message {
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
                self.is_over = true;
                return Ok(Step::Done);
            }
            "error" => return Err(Broken::Said(Said::within(data).unwrap_or_default())),
            // Pings, and what later versions add: the API asks to ignore what is not known.
            _ => {}
        }
        Ok(Step::More)
    }

    fn end(self) -> Result<Response, Broken> {
        if !self.is_over {
            return Err(Broken::Unfinished("there is no message_stop".to_owned()));
        }
        let Some(raw_stop) = self.raw_stop else {
            return Err(Broken::Promise("it does not say why it stopped".to_owned()));
        };
        let stop = ModelStop::of_word(&raw_stop);
        if raw_stop == "model_context_window_exceeded" && self.parts.is_empty() {
            return Err(Broken::Said(Said {
                code: "context_length_exceeded".to_owned(),
                message: raw_stop,
                status: None,
            }));
        }
        Ok(Response {
            content: self.parts.settle(&self.provider),
            stop,
            raw_stop: Some(raw_stop),
            usage: self.usage.usage(),
            model: self.model,
            provider: self.provider,
            tool_results: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::Reader as _;
    use serde_json::json;

    /// What the blocks of a stream count, one of which has this content.
    fn counted(block: &Value, fragments: &[&str]) -> u64 {
        let mut reader = Reader::new("p", "m", CallIds::default());
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

    // proves: UP-1
    #[test]
    fn opaque_block_counts_once() {
        let data = "x".repeat(100_000);
        let redacted = json!({"type": "redacted_thinking", "data": data});
        let size = counted(&redacted, &[]);
        assert!((100_000..101_000).contains(&size), "{size}");
        let called = json!({"type": "server_tool_use", "id": "a", "name": "b", "input": {}});
        let size = counted(&called, &["{\"query\": \"", &data, "\"}"]);
        assert!((100_000..101_000).contains(&size), "{size}");
    }

    /// Small values take more memory than their text.
    #[test]
    fn opaque_numbers_count_their_memory() {
        let numbers = vec![0; 10_000];
        let block = json!({"type": "new", "data": numbers});
        assert!(counted(&block, &[]) >= 10_000 * size_of::<Value>() as u64);
    }
}
