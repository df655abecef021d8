//! OpenAI. Its newer models reject functions together with reasoning in Chat Completions, so Responses is the default
//! for them (quirk 36); the servers that copy OpenAI copy Chat Completions.

use super::KnownProvider;
use crate::{
    openai::quirks::{CallIdForm, LimitField, Quirks, ReasoningReplay},
    provider::Api,
};

pub(super) const PROVIDER: KnownProvider = KnownProvider {
    name: "openai",
    api: Api::OpenAiResponses,
    base_url: "https://api.openai.com/v1",
    url_variable: "OPENAI_BASE_URL",
    key_variable: "OPENAI_API_KEY",
    offers_default_model: true,
    models: MODELS,
    takes_documents: true,
    domain: "openai.com",
    enforces_schemas: true,
    quirks: QUIRKS,
    ..KnownProvider::DEFAULT
};

/// Usual models of OpenAI, on whichever host of OpenAI or Azure.
pub(super) const MODELS: &[&str] = &["gpt-5.1", "gpt-5", "gpt-5-mini", "gpt-4.1"];

/// Quirks of OpenAI's own models, on whichever host of OpenAI or Azure.
pub(super) const QUIRKS: Quirks = Quirks {
    limit: LimitField::MaxCompletionTokens,
    reasoning_replay: ReasoningReplay::Never,
    // Tools together with reasoning are left to Responses, by models since GPT-5.4.
    thinks_only_without_tools: true,
    cache_key: true,
    call_ids: CallIdForm::UpTo40,
    ..Quirks::DEFAULT
};
