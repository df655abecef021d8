//! Defines how a host receives the effects that tools requested.

use futures_util::future::BoxFuture;
use serde_json::Value;
use std::{any::type_name, fmt};
use turnery_engine::SessionId;

/// Receives the effects of tools after the commit of their loop, one at a time, in the order in which they were
/// requested. An effect whose delivery fails or is interrupted, by a crash for example, is delivered again: a
/// session delivers what is left over when it is opened, and after each commit.
pub trait EffectHandler: Send + Sync + 'static {
    /// Name of the handler in messages to the user.
    fn name(&self) -> &str {
        type_name::<Self>()
    }

    /// Delivers an effect, within 20 seconds. Dropping the future must stop its work. The error tells the user why
    /// the effect could not be delivered; it is delivered again later, five times at most in all.
    fn deliver(&self, effect: CommittedEffect) -> BoxFuture<'_, Result<(), String>>;
}

impl fmt::Debug for dyn EffectHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Effect that is stored with its loop.
#[derive(Clone, Debug, PartialEq)]
pub struct CommittedEffect {
    /// Key that no other effect ever has, and that stays the same when this one is delivered again.
    pub key: String,
    /// Session that the user sees. The effects of a sub-agent are delivered in its topmost parent.
    pub session_id: SessionId,
    /// Name of the tool.
    pub tool_name: String,
    /// The effect, as the tool requested it.
    pub effect: Value,
    /// Number of this delivery, from 1.
    pub attempt: u32,
}
