//! Judges requests to models as the real APIs do, for fake servers in tests.
//!
//! A fake server that accepts everything hides what a real one refuses. [`judge()`] refuses what the APIs document to
//! refuse or are known to refuse; each [`Rule`] names its source.

mod anthropic;
mod chat;
mod check;
mod gemini;
mod issued_reasoning;
mod json;
mod judge;
mod record;
mod request;
mod responses;
mod rule;
mod tool_names;
mod tool_schema;

pub use issued_reasoning::IssuedReasoning;
pub use judge::{judge, rules, violations};
pub use record::record;
pub use request::{ApiFormat, ApiRequest};
pub use rule::{Rule, Violation};
