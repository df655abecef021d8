//! ACP: JSON-RPC over stdio, and the translation between the wire and the agent. The only crate that knows both.
