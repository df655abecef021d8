//! Model APIs behind one trait, and built-in models that need no network.

pub mod model;
pub mod model_registry;
pub mod offline;
pub mod provider;
pub mod retry;
pub mod scripted;

mod anthropic;
mod api;
mod attempt;
mod call_name;
mod context_hash;
mod custom_headers;
mod dialect;
mod endpoint;
#[cfg(test)]
mod enforced_requests;
mod errors;
mod fallback;
mod gemini;
mod history;
mod http;
mod json_str;
mod key_check;
mod model_catalogue;
mod model_list;
mod model_name;
mod model_overrides;
mod openai;
mod parallel_calls;
#[cfg(test)]
mod property_tests;
mod providers;
mod redact;
mod remote_model;
mod response_accumulator;
mod responses;
mod schema_dialect;
mod served_models;
mod silence;
mod sse;
mod strict_schema;
mod token_count;

pub use key_check::check_key;
pub use model::{
    Model, ModelEvent, ModelEventSender, ModelInfo, ModelRequest, RetryNotice, SilenceNotice,
    Thinking, ToolChoice,
};
pub use model_catalogue::{
    CataloguePrice, ModelFacts, ThinkingBudget, ThinkingControl, ThinkingLevel, is_listed_model,
};
pub use model_list::ServedModel;
pub use model_name::{ModelName, UnknownModelError};
pub use model_overrides::ModelOverride;
pub use model_registry::{DEFAULT_MAX_OUTPUT, ModelRegistry, PriceSource};
pub use offline::OfflineModel;
pub use provider::{Api, CallLimits, MissingKeyError, ProviderConfig, ProviderSource};
pub use retry::RetryPolicy;
pub use scripted::{Scenario, ScenarioError, ScriptedModel, scenario_schema};
pub use served_models::{is_loopback, served_models};
