//! Defines tools with typed arguments.

use crate::{
    access::Access,
    arguments::{parse_args, schema_for},
    tool::{DEFAULT_TIMEOUT, PreparedCall, Tool, ToolCx, into_envelope},
    workspace::Workspace,
};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{borrow::Cow, future::ready, time::Duration};
use turnery_engine::{CallDetail, CallKind, ToolEnvelope, ToolError, ToolSchema, ToolSpec};

/// A tool whose arguments are a type. Every typed tool is a [`Tool`].
///
/// The schema that the model receives is derived from the argument type; doc comments of its fields are the
/// descriptions of the arguments.
pub trait TypedTool: Send + Sync + 'static {
    /// Arguments of a call.
    type Args: DeserializeOwned + JsonSchema + Send;

    /// Name of the tool.
    const NAME: &'static str;

    /// Title of a call, unless [`describe`](Self::describe) gives one; by default the tool's name.
    const TITLE: &'static str = Self::NAME;

    /// Kind of action.
    const KIND: CallKind = CallKind::Other;

    /// True if calls may run in parallel with others: they change nothing that these could observe (C-6).
    const IS_PARALLEL: bool = false;

    /// True if the tool opens child sessions; see [`Tool::opens_sessions`].
    const OPENS_SESSIONS: bool = false;

    /// True if the tool receives its own session; see [`Tool::uses_session`].
    const USES_SESSION: bool = Self::OPENS_SESSIONS;

    /// Returns the description that the model receives.
    fn description(&self) -> Cow<'static, str>;

    /// Returns the schema of the arguments that the model receives. By default it is derived from their type.
    fn schema(&self) -> Value {
        schema_for::<Self::Args>()
    }

    /// Returns true if providers that can make the model's arguments fit the schema should do so
    /// ([`ToolSchema::enforced`]).
    fn enforces_schema(&self) -> bool {
        false
    }

    /// Returns how to show a call, without IO. Paths are absolute. By default a call shows [`TITLE`](Self::TITLE).
    fn describe(&self, _args: &Self::Args, _workspace: &Workspace) -> CallDetail {
        CallDetail {
            title: Self::TITLE.to_owned(),
            kind: Self::KIND,
            ..CallDetail::default()
        }
    }

    /// Returns what the call will access and how to show it; see [`Tool::prepare`]. By default a tool accesses
    /// nothing outside the conversation.
    fn prepare(
        &self,
        args: Self::Args,
        cx: &ToolCx,
    ) -> impl Future<Output = Result<PreparedCall, ToolError>> + Send {
        ready(Ok(PreparedCall {
            access: Access::Nothing,
            detail: self.describe(&args, &cx.workspace),
        }))
    }

    /// Runs the call; see [`Tool::run`].
    fn run(
        &self,
        args: Self::Args,
        cx: &ToolCx,
    ) -> impl Future<Output = Result<ToolEnvelope, ToolError>> + Send;

    /// Returns the time limit of `run` for these arguments.
    fn timeout(&self, _args: &Self::Args) -> Duration {
        DEFAULT_TIMEOUT
    }
}

impl<T: TypedTool> Tool for T {
    fn spec(&self) -> ToolSpec {
        let schema = ToolSchema::from(self.schema());
        ToolSpec {
            name: T::NAME.to_owned(),
            description: self.description().into_owned(),
            schema: match self.enforces_schema() {
                true => schema.enforced(),
                false => schema,
            },
        }
    }

    fn name(&self) -> String {
        T::NAME.to_owned()
    }

    fn kind(&self) -> CallKind {
        T::KIND
    }

    fn describe(&self, args: &Value, workspace: &Workspace) -> CallDetail {
        parse_args(args)
            .map(|args| TypedTool::describe(self, &args, workspace))
            .unwrap_or_default()
    }

    fn can_run_in_parallel(&self, _args: &Value) -> bool {
        T::IS_PARALLEL
    }

    fn opens_sessions(&self) -> bool {
        T::OPENS_SESSIONS
    }

    fn uses_session(&self) -> bool {
        T::USES_SESSION
    }

    fn prepare<'a>(
        &'a self,
        args: &'a Value,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<PreparedCall, ToolError>> {
        Box::pin(async move { TypedTool::prepare(self, parse_args(args)?, cx).await })
    }

    fn run<'a>(&'a self, args: &'a Value, cx: &'a ToolCx) -> BoxFuture<'a, ToolEnvelope> {
        Box::pin(async move {
            into_envelope(match parse_args(args) {
                Ok(args) => TypedTool::run(self, args, cx).await,
                Err(invalid) => Err(invalid),
            })
        })
    }

    fn timeout(&self, args: &Value) -> Duration {
        parse_args(args).map_or(DEFAULT_TIMEOUT, |args| TypedTool::timeout(self, &args))
    }
}
