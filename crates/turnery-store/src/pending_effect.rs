//! Effects of tools that are stored with their loop and handed to the host afterwards.

use serde_json::Value;
use std::time::Duration;
use turnery_engine::SessionId;

/// Effect of a tool that the host has not received yet.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingEffect {
    /// Session that delivers the effect, and with which it is deleted: that of the loop, or one of its parents.
    pub session_id: SessionId,
    /// Key that no other effect ever has. The host tells by it whether an effect is handed over once more.
    pub key: String,
    /// Name of the tool.
    pub tool_name: String,
    /// The effect.
    pub effect: Value,
}

/// Effect that the caller of [`Store::take_effect`](crate::Store::take_effect) is to deliver.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenEffect {
    /// The effect.
    pub pending: PendingEffect,
    /// Number of this attempt, from 1.
    pub attempt: u32,
}

/// Result of [`Store::take_effect`](crate::Store::take_effect).
#[derive(Clone, Debug, PartialEq)]
pub enum NextEffect {
    /// The caller has this effect now, and nobody else does.
    Taken(TakenEffect),
    /// All effects are taken or postponed; one may be free after this time.
    Later(Duration),
    /// No effects are left.
    Empty,
}

/// Maximum time by which an effect can be postponed. One that is postponed for longer is free: the clock was set
/// back.
pub const MAX_EFFECT_DELAY: Duration = Duration::from_secs(3600);
