//! Reads the lists of models that providers and servers return, in all their shapes.

use serde_json::Value;
use std::collections::HashSet;
use turnery_engine::Price;

/// Maximum number of models read from a list.
const MAX_MODELS: usize = 500;
/// Longest model name. Unit: bytes.
const MAX_NAME_BYTES: usize = 256;

/// A model in a server's list, with what the server states about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedModel {
    /// Name for requests.
    pub name: String,
    /// Size of the context window. Unit: tokens.
    pub context_window: Option<u32>,
    /// Largest response. Unit: tokens.
    pub max_output: Option<u32>,
    /// True if the model accepts images.
    pub images: Option<bool>,
    /// Price (OpenRouter).
    pub price: Option<Price>,
}

/// A list of models.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ModelList {
    pub(crate) models: Vec<ServedModel>,
    /// `owned_by` of the first model, which names the program on local servers.
    pub(crate) owner: String,
}

/// Fields that state the context window, from the most to the least exact.
const WINDOW_FIELDS: &[&str] = &[
    // LM Studio: the window that the loaded model has, which may be smaller than the largest one.
    "/loaded_context_length",
    // llama.cpp.
    "/meta/n_ctx",
    // vLLM, SGLang.
    "/max_model_len",
    // OpenRouter: that of the servers it routes to.
    "/top_provider/context_length",
    // OpenRouter, Together, Moonshot, DeepInfra.
    "/context_length",
    // Groq.
    "/context_window",
    // Mistral, LM Studio.
    "/max_context_length",
    // Gemini.
    "/inputTokenLimit",
    // Anthropic.
    "/max_input_tokens",
];

/// Fields that state the largest response.
const OUTPUT_FIELDS: &[&str] = &[
    "/top_provider/max_completion_tokens",
    "/max_completion_tokens",
    "/outputTokenLimit",
    "/max_tokens",
];

impl ModelList {
    /// Reads a list; `None` if the text is not JSON. JSON of another shape is an empty list.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let rows = value.as_array().or_else(|| {
            let list = value.get("data").or_else(|| value.get("models"));
            list.and_then(Value::as_array)
        });
        let rows = rows.map(Vec::as_slice).unwrap_or_default();
        let mut seen = HashSet::new();
        let owner = rows.first().and_then(|row| row["owned_by"].as_str());
        Some(Self {
            owner: owner.unwrap_or_default().to_owned(),
            models: rows
                .iter()
                .filter_map(parse_row)
                .filter(|model| seen.insert(model.name.clone()))
                .take(MAX_MODELS)
                .collect(),
        })
    }
}

/// Reads a row; `None` if its model does not chat or its name is invalid.
fn parse_row(row: &Value) -> Option<ServedModel> {
    let text = |field: &str| row.get(field).and_then(Value::as_str);
    let name = text("id").or_else(|| text("name"))?;
    let name = name.strip_prefix("models/").unwrap_or(name);
    let is_embedding = text("type").is_some_and(|kind| kind.contains("embed"));
    let methods = row
        .get("supportedGenerationMethods")
        .and_then(Value::as_array);
    let generates =
        methods.is_none_or(|methods| methods.iter().any(|method| method == "generateContent"));
    let chats = row.pointer("/capabilities/completion_chat") != Some(&Value::Bool(false));
    if is_embedding || !generates || !chats || !is_valid_model_name(name) {
        return None;
    }
    Some(ServedModel {
        name: name.to_owned(),
        context_window: first_size(row, WINDOW_FIELDS),
        max_output: first_size(row, OUTPUT_FIELDS),
        images: accepts_images(row),
        price: row.get("pricing").and_then(parse_price),
    })
}

/// Returns the first of the fields that is a positive number.
pub(crate) fn first_size(row: &Value, fields: &[&str]) -> Option<u32> {
    let sizes = fields
        .iter()
        .filter_map(|field| row.pointer(field)?.as_u64());
    let sizes = sizes.filter_map(|size| u32::try_from(size).ok());
    sizes.into_iter().find(|size| *size > 0)
}

fn accepts_images(row: &Value) -> Option<bool> {
    let modalities = row.pointer("/architecture/input_modalities");
    match modalities.and_then(Value::as_array) {
        Some(list) => Some(list.iter().any(|modality| modality == "image")),
        None if row["type"] == "vlm" => Some(true),
        None if row["type"] == "llm" => Some(false),
        None => row.pointer("/capabilities/vision")?.as_bool(),
    }
}

/// Reads a price in US dollars per token, written as text. A negative one stands for a price that varies.
fn parse_price(pricing: &Value) -> Option<Price> {
    let millionths = |field: &str| {
        let per_token: f64 = pricing.get(field)?.as_str()?.parse().ok()?;
        let millionths = (per_token * 1e12).round();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be in range"
        )]
        (0.0..1e15)
            .contains(&millionths)
            .then_some(millionths as u64)
    };
    let input = millionths("prompt")?;
    Some(Price {
        input,
        output: millionths("completion")?,
        cache_read: millionths("input_cache_read").unwrap_or(input),
        cache_write: millionths("input_cache_write").unwrap_or(input),
        tiers: &[],
    })
}

/// Returns true if a model name is safe to show and to send in requests.
fn is_valid_model_name(name: &str) -> bool {
    let is_shown =
        |c: char| c.is_ascii_graphic() || c == ' ' || (!c.is_ascii() && c.is_alphanumeric());
    (1..=MAX_NAME_BYTES).contains(&name.len()) && name.trim() == name && name.chars().all(is_shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse_one(row: Value) -> Option<ServedModel> {
        let list = ModelList::parse(&json!({"data": [row]}).to_string()).unwrap();
        list.models.into_iter().next()
    }

    /// The field of each server, as its documentation shows it.
    #[test]
    fn context_window_is_read_from_every_server() {
        for (row, window) in [
            (
                json!({"id": "m", "object": "model", "max_model_len": 32_768}),
                Some(32_768),
            ),
            (
                json!({"id": "m", "max_context_length": 131_072, "loaded_context_length": 4096}),
                Some(4096),
            ),
            (
                json!({"id": "m", "max_context_length": 131_072}),
                Some(131_072),
            ),
            (
                json!({"id": "m", "context_window": 131_072, "max_completion_tokens": 65_536}),
                Some(131_072),
            ),
            (
                json!({"id": "m", "context_length": 1_000_000, "top_provider": {"context_length": 200_000}}),
                Some(200_000),
            ),
            (
                json!({"id": "m", "context_length": 1_000_000, "top_provider": {"context_length": null}}),
                Some(1_000_000),
            ),
            (
                json!({"name": "models/m", "inputTokenLimit": 1_048_576}),
                Some(1_048_576),
            ),
            (
                json!({"id": "m", "max_input_tokens": 200_000}),
                Some(200_000),
            ),
            (json!({"id": "m", "meta": {"n_ctx_train": 40_960}}), None),
            (json!({"id": "m", "context_length": "many"}), None),
            (json!({"id": "m", "context_length": -1}), None),
            (json!({"id": "m", "context_length": 0}), None),
        ] {
            let model = parse_one(row.clone()).unwrap();
            assert_eq!((&*model.name, model.context_window), ("m", window), "{row}");
        }
    }

    #[test]
    fn models_that_do_not_chat_are_left_out() {
        for row in [
            json!({"id": "nomic", "type": "embeddings"}),
            json!({"name": "models/embed", "supportedGenerationMethods": ["embedContent"]}),
            json!({"id": "ocr", "capabilities": {"completion_chat": false}}),
            json!({"object": "model"}),
            json!({"id": 7}),
            json!("text"),
        ] {
            assert_eq!(parse_one(row.clone()), None, "{row}");
        }
    }

    #[test]
    fn price_of_a_reseller_is_per_token() {
        let pricing = json!({"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"});
        let row = json!({"id": "a/m", "architecture": {"input_modalities": ["text", "image"]}, "pricing": pricing});
        let model = parse_one(row).unwrap();
        let price = Price {
            input: 3_000_000,
            output: 15_000_000,
            cache_read: 300_000,
            cache_write: 3_000_000,
            tiers: &[],
        };
        assert_eq!((model.price, model.images), (Some(price), Some(true)));
        for varies in [
            json!({"prompt": "-1", "completion": "-1"}),
            json!({"prompt": "NaN", "completion": "1"}),
            json!({"prompt": 3, "completion": 15}),
            json!({"prompt": "0.1"}),
        ] {
            let model = parse_one(json!({"id": "m", "pricing": varies})).unwrap();
            assert_eq!(model.price, None);
        }
    }

    #[test]
    fn lists_of_any_shape_are_read() {
        let names = |text: &str| {
            ModelList::parse(text).map(|list| {
                list.models
                    .into_iter()
                    .map(|it| it.name)
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(
            names(r#"[{"id": "a"}, {"id": "a"}, {"id": "b"}]"#),
            Some(vec!["a".into(), "b".into()])
        );
        assert_eq!(
            names(r#"{"models": [{"name": "models/g"}]}"#),
            Some(vec!["g".into()])
        );
        assert_eq!(names(r#"{"data": 7}"#), Some(vec![]));
        assert_eq!(names("7"), Some(vec![]));
        assert_eq!(names("<html>"), None);
        let many: Vec<Value> = (0..MAX_MODELS + 9)
            .map(|n| json!({"id": format!("m{n}")}))
            .collect();
        assert_eq!(
            names(&json!({"data": many}).to_string()).unwrap().len(),
            MAX_MODELS
        );
    }
}
