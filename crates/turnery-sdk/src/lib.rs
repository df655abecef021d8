//! Embeds the turnery agent in a Rust program, which needs no other crate.
//!
//! An [`AgentBuilder`] makes an agent of a model, tools and a store; a [`SessionBuilder`] opens a session, in
//! memory and without a folder unless told otherwise; a [`PromptBuilder`] runs a prompt to its end, to a sink
//! or as a stream.
//!
//! ```no_run
//! use turnery_sdk::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema)]
//! #[serde(crate = "turnery_sdk::serde")]
//! #[schemars(crate = "turnery_sdk::schemars")]
//! struct SeatsArgs {
//!     tables: u32,
//! }
//!
//! async fn ask(question: &str) -> Result<Option<String>, Box<dyn std::error::Error>> {
//!     let seats = async |args: SeatsArgs, _| ToolEnvelope::text(format!("{} seats", 4 * args.tables));
//!     let agent = AgentBuilder::new("openai/gpt-5-mini")? // the key is in OPENAI_API_KEY
//!         .system("You plan parties.")
//!         .tool(FunctionTool::new("seats", "Counts the seats at tables.", seats))
//!         .build();
//!     let session = agent.session("party-42").open().await?;
//!     Ok(session.new_prompt(question).run().await?.text())
//! }
//! ```
//!
//! [`converse()`] and [`generate_text`] call a model without a session. Everything of the crates below is in
//! [`engine`], [`models`], [`store`], [`tools`] and [`code`]; a program with tools that start processes calls
//! [`tools::processes::init`] first, and one whose models act by code calls [`code::init`].

pub mod prelude;

mod activity_stream;
mod agent_builder;
mod channel_sink;
mod converse;
mod prompt_builder;
mod prompt_input;
mod session_builder;

pub use activity_stream::ActivityStream;
pub use agent_builder::AgentBuilder;
pub use channel_sink::ChannelSink;
pub use converse::{
    ConverseError, ConverseOptions, ConverseOutput, converse, generate, generate_text,
};
pub use prompt_builder::{PromptBuilder, PromptOutput, RunError, SessionExt};
pub use prompt_input::{ImageBlob, InputError, InputItem, PromptInput};
pub use session_builder::{AgentExt, SessionBuilder};

pub use futures_util::future::BoxFuture;
pub use schemars;
pub use serde;
pub use serde_json;
pub use turnery_agent::*;
pub use turnery_code as code;
pub use turnery_engine::{
    self as engine, Content, Limits, Outcome, OutcomeCategory, SessionId, TurnFinish, Usage,
};
pub use turnery_models as models;
pub use turnery_store as store;
pub use turnery_tools as tools;

/// Runs a future on a new single-threaded runtime, for programs without a tokio runtime of their own.
///
/// # Panics
///
/// Panics if the system refuses to create the runtime, or inside another one.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    runtime.block_on(future)
}

/// Compiles the code of the page about embedding.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct EmbeddingPage;
