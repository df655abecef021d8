//! Identifiers. All are opaque strings, except for the loop id, whose format is part of the API.

use serde::{Deserialize, Deserializer, Serialize, de};
use std::{fmt, sync::Arc};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns the id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str(ArcStrVisitor).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

id!(
    /// Id of a session, the stored conversation. Contains no dots, so that loop ids can be split (D-13).
    SessionId
);
id!(
    /// Id of one host request, which drives one or more loops.
    PromptId
);
id!(
    /// Id of one engine execution: `{session_id}.{config_segment}.{N}` (LOOP-10).
    LoopId
);
id!(
    /// Id of one tool call. Unique in the session.
    CallId
);
id!(
    /// Id of a frame, a separate context inside a session (LASH-12).
    FrameId
);
id!(
    /// Id of one message, the same live and in a replay.
    MessageId
);

/// Deserializes directly into an `Arc<str>`: long sessions have many ids, and a `String` first would take
/// twice as long.
struct ArcStrVisitor;

impl de::Visitor<'_> for ArcStrVisitor {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.into())
    }
}

impl LoopId {
    /// Builds the id of a session's loop `number`; `segment` names the model configuration and has no dots
    /// (LOOP-10, LOOP-11).
    #[must_use]
    pub fn from_parts(session: &SessionId, segment: &str, number: u64) -> Self {
        Self::from(format!("{session}.{segment}.{number}"))
    }

    /// Returns the loop number, the last part of the id; `None` if that part is not a number.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        let (_, number) = self.0.rsplit_once('.')?;
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| number.parse().ok())?
    }

    /// Returns the id of the session: everything before the first dot (LOOP-69, D-13).
    #[must_use]
    pub fn session_id(&self) -> SessionId {
        let (session, _) = self.0.split_once('.').unwrap_or((&self.0, ""));
        SessionId::from(session)
    }
}

/// Id of a turn: one model call, with its retries, and the tool calls it requested (TURN-6).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnId {
    /// Loop that contains the turn.
    pub loop_id: LoopId,
    /// Index of the turn in the loop, from 0 without gaps (TURN-8).
    pub turn_index: u32,
}
