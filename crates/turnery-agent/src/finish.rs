//! Lets a prompt end with a value: the rule of a prompt, and the tools with which the model submits a value or an error.

mod finish_tool;
mod submit_error_tool;
mod text_value;
mod value_schema;

pub use finish_tool::FinishTool;
pub use submit_error_tool::SubmitErrorTool;
pub use value_schema::{ValueSchema, ValueSchemaError};

use crate::code_mode::Protocol;
use std::sync::Arc;
use turnery_engine::{Response, Termination, TextValue};
use turnery_tools::{Tool, Toolbox};

/// How a prompt may end (LASH-113). A rule other than `Prose` gives the model the tools `finish` and `submit_error`.
#[derive(Clone, Debug, Default)]
pub enum FinishRule {
    /// With prose.
    #[default]
    Prose,
    /// With prose or a value (LASH-118).
    ProseOrValue,
    /// With a value (LASH-117).
    Value,
    /// With a value that the schema accepts (LASH-120).
    ValueOf(Arc<ValueSchema>),
}

/// Usual form of final values without a schema (LASH-121).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalAnswerFormat {
    /// Text in Markdown, for a person (LASH-122).
    Markdown,
    /// Plain data, for a program (LASH-123, LASH-125).
    RawValue,
}

impl FinishRule {
    /// Returns the rule for a protocol. In code mode, prose or a value ends a prompt unless only a value does (LASH-10).
    pub(crate) fn for_protocol(&self, protocol: Protocol) -> Self {
        match (protocol, self) {
            (Protocol::Code, Self::Prose) => Self::ProseOrValue,
            (Protocol::Code | Protocol::Tools, rule) => rule.clone(),
        }
    }

    /// Returns how the loops of the prompt may end.
    pub(crate) fn termination(&self) -> Termination {
        match self {
            Self::Prose | Self::ProseOrValue => Termination::Natural,
            Self::Value | Self::ValueOf(_) => Termination::FinishRequired,
        }
    }

    /// Returns the value in the text of a response without calls, for a rule with a schema (LASH-120).
    pub(crate) fn value_in(&self, response: &Response) -> TextValue {
        match self {
            Self::ValueOf(schema) if !response.needs_tools() => {
                text_value::find(&response.text(), schema)
            }
            Self::Prose | Self::ProseOrValue | Self::Value | Self::ValueOf(_) => TextValue::Absent,
        }
    }

    /// Returns the tools that the model needs to finish.
    pub(crate) fn tools(&self, format: FinalAnswerFormat) -> PromptTools {
        let finish = match self {
            Self::Prose => return PromptTools::default(),
            Self::ProseOrValue => FinishTool::optional(format),
            Self::Value => FinishTool::required(format),
            Self::ValueOf(schema) => FinishTool::for_schema(Arc::clone(schema)),
        };
        let tools: [Arc<dyn Tool>; 2] = [Arc::new(finish), Arc::new(SubmitErrorTool)];
        PromptTools(Arc::new(tools))
    }
}

/// Tools that only the loops of one prompt have. Sub-agents do not inherit them.
#[derive(Clone, Default)]
pub(crate) struct PromptTools(Arc<[Arc<dyn Tool>]>);

impl PromptTools {
    /// Returns a single tool.
    pub(crate) fn single(tool: impl Tool) -> Self {
        Self(Arc::new([Arc::new(tool) as Arc<dyn Tool>]))
    }

    /// Adds the tools to those of the session; they replace tools of the same name.
    pub(crate) fn add_to(&self, toolbox: &Toolbox) -> Toolbox {
        if self.is_empty() {
            return toolbox.clone();
        }
        let own = self.0.iter().map(|tool| tool.name());
        let without = own.fold(toolbox.clone(), |toolbox, name| toolbox.without_tool(&name));
        without.with_extra_tools(self.0.to_vec())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
