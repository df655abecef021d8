//! Models: one file per model API, all behind one trait, and the ones that need no network.

pub mod catalogue;
pub mod model;
pub mod offline;
pub mod scripted;

pub use catalogue::{Api, Catalogue, ModelName, ProviderConfig, UnknownModel};
pub use model::{DeltaSender, Model, ModelInfo, ModelRequest, Thinking};
pub use offline::Offline;
pub use scripted::{Scenario, ScenarioError, Scripted, scenario_schema};
