//! Models: one file per model API, all behind one trait, and the ones that need no network.

pub mod catalogue;
pub mod model;
pub mod offline;
pub mod provider;
pub mod retry;
pub mod scripted;

mod answer;
mod anthropic;
mod attempt;
mod check;
mod facts;
mod fault;
mod history;
mod http;
mod known;
#[cfg(test)]
mod laws;
mod openai;
mod redact;
mod remote;
mod served;
mod silence;
mod sse;
mod text;
mod tokens;

pub use catalogue::{Catalogue, ModelName, UnknownModel};
pub use check::check_key;
pub use facts::ModelFacts;
pub use model::{DeltaSender, Model, ModelInfo, ModelRequest, Retry, Silent, Thinking, Told};
pub use offline::Offline;
pub use provider::{Api, CallLimits, MissingKey, ProviderConfig, Providers};
pub use retry::RetryPolicy;
pub use scripted::{Scenario, ScenarioError, Scripted, scenario_schema};
pub use served::served_models;
