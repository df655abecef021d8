//! Brings the schemas of tools to the part of JSON Schema that a provider accepts: providers refuse a whole request for
//! one schema outside of it, and tools of MCP servers come with any schema.
//!
//! What is left out only loosens a schema: a tool checks its arguments itself.

mod cache;
mod property_names;
mod root;
mod subset;
#[cfg(test)]
mod tests;
mod well_formed;

pub(crate) use cache::SchemaCache;
pub(crate) use property_names::restore_property_names;

use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use turnery_engine::{ToolSchema, ToolSpec};

/// Part of JSON Schema that a provider accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchemaDialect {
    /// Valid JSON Schema 2020-12 whose root is an object without `anyOf`, `oneOf` or `allOf`, and property names of 1 to
    /// 64 letters, digits, `_`, `.` and `-`:
    /// <https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use>.
    Anthropic,
    /// Valid JSON Schema whose root is an object with `properties` and without unions, `enum`, `const` and `not`:
    /// <https://platform.openai.com/docs/guides/function-calling>. The common ground of other servers too.
    OpenAi,
    /// What the fields `parameters` and `parametersJsonSchema` of a function declaration have in common:
    /// <https://ai.google.dev/api/caching#Schema>, <https://ai.google.dev/api/caching#FunctionDeclaration>.
    Gemini,
    /// Every schema has a type or is an `anyOf`, never both, and no `$ref`:
    /// <https://platform.moonshot.ai/docs/guide/use-kimi-api-to-complete-tool-calls>, MoonshotAI/kimi-cli#1595.
    Moonshot,
}

/// Schema of a tool in the dialect of a provider.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum DialectSchema {
    /// The schema as the tool declares it.
    Unchanged(ToolSchema),
    Adapted(ToolSchema),
}

impl DialectSchema {
    pub(crate) fn is_unchanged(&self) -> bool {
        match self {
            Self::Unchanged(_) => true,
            Self::Adapted(_) => false,
        }
    }
}

impl SchemaDialect {
    /// Returns the dialect of a model behind a Chat Completions server that passes schemas on unchanged.
    pub(crate) fn of_model(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        if name.starts_with("kimi") || name.starts_with("moonshot") {
            Self::Moonshot
        } else if name.starts_with("gemini") {
            Self::Gemini
        } else if name.starts_with("claude") {
            Self::Anthropic
        } else {
            Self::OpenAi
        }
    }

    /// Returns the schemas of tools in this dialect. A schema that is within the dialect is passed through.
    pub(crate) fn adapt(self, tools: &[ToolSpec]) -> Arc<[DialectSchema]> {
        let adapt = |tool: &ToolSpec| match self.accepts(&tool.schema) {
            true => DialectSchema::Unchanged(tool.schema.clone()),
            false => DialectSchema::Adapted(self.convert(&tool.schema).into()),
        };
        tools.iter().map(adapt).collect()
    }

    fn accepts(self, schema: &Value) -> bool {
        well_formed::is_well_formed(schema)
            && root::is_plain_object(schema)
            && match self {
                Self::Anthropic => property_names::are_valid(schema),
                Self::OpenAi => schema.get("properties").is_some(),
                Self::Gemini | Self::Moonshot => subset::accepts(self, schema),
            }
    }

    fn convert(self, schema: &Value) -> Value {
        let mut schema = schema.clone();
        well_formed::repair(&mut schema);
        let mut merged = match root::is_plain_object(&schema) {
            true => schema.clone(),
            false => {
                let mut left = root::MAX_MERGED;
                Value::Object(root::merge(&schema, &schema, &mut left))
            }
        };
        match self {
            Self::Anthropic => property_names::rename(&mut merged),
            Self::OpenAi => {
                if let Value::Object(members) = &mut merged {
                    members
                        .entry("properties")
                        .or_insert_with(|| Value::Object(Map::new()));
                }
            }
            Self::Gemini | Self::Moonshot => return subset::convert(self, &merged, &schema),
        }
        merged
    }
}
