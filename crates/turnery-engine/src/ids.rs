//! Identifiers. All are strings that no one takes apart, but for the loop id, whose form is a promise.

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
            /// The id as text.
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
                from.deserialize_str(Shared).map(Self)
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
    /// A session: the durable conversation. Free of dots, so that a loop id can be taken apart (D-13).
    SessionId
);
id!(
    /// One host request that drives one or more loops.
    PromptId
);
id!(
    /// One engine execution: `{session_id}.{config_segment}.{N}` (LOOP-10).
    LoopId
);
id!(
    /// One request of the model to use a tool. Unique in the session.
    CallId
);
id!(
    /// A frame: a lineage of context inside a session (LASH-12).
    FrameId
);
id!(
    /// One message, live and replayed alike.
    MessageId
);

/// Shares a text at once: a long session has many ids, and to own each first would take twice as long.
struct Shared;

impl de::Visitor<'_> for Shared {
    type Value = Arc<str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.into())
    }
}

impl LoopId {
    /// Makes the id of a session's loop number `number`; `segment` names the model configuration and
    /// has no dots (LOOP-10, LOOP-11).
    #[must_use]
    pub fn numbered(session: &SessionId, segment: &str, number: u64) -> Self {
        Self::from(format!("{session}.{segment}.{number}"))
    }

    /// The loop's number, which is the last part of the id; `None` if that is not a number.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        let (_, number) = self.0.rsplit_once('.')?;
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| number.parse().ok())?
    }

    /// The session that the loop belongs to: everything before the first dot (LOOP-69, D-13).
    #[must_use]
    pub fn session(&self) -> SessionId {
        let (session, _) = self.0.split_once('.').unwrap_or((&self.0, ""));
        SessionId::from(session)
    }
}

/// One accepted model call and the calls it asked for (TURN-6).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnId {
    /// The loop that the turn lies in.
    pub loop_id: LoopId,
    /// Zero-based, without gaps (TURN-8).
    pub turn_index: u32,
}
