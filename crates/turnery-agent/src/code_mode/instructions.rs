//! Tells the model how to write code, and describes the tools as Python functions.

use super::code_block::LANGUAGE;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use turnery_engine::ToolSpec;

/// Maximum length of a parameter's schema. Unit: bytes.
const MAX_SCHEMA_BYTES: usize = 4_000;

/// Maximum number of characters of a function's description.
const MAX_DESCRIPTION: usize = 600;

/// Returns the part of the system prompt that explains code mode.
pub(super) fn code_instructions(functions: &[ToolSpec]) -> String {
    let mut text = format!(
        "\n\n# Acting by code\n\
         You act by writing Python. To act, end your reply with one block that begins with the line \
         ```{LANGUAGE} and ends with the line ```. It is run, and you get what it prints, the value of its last \
         expression, and its errors. Write one block a reply and nothing after it; the block ends your turn. A reply \
         without such a block is your final answer to the user, unless you have to finish with a value.\n\
         - Variables, functions and imports stay for your next blocks.\n\
         - The code has no access to files, processes, the network or the clock. It acts through the functions below, \
         which are always defined. They return text; a failed call raises RuntimeError.\n\
         - The interpreter knows the core of Python: no inheritance, `del`, `yield` or `%` formatting, and of the standard \
         library little more than asyncio, json, math and re.\n\
         - Do much in one block: loop, filter and combine results, and print only what you need to see.\n\
         - `await asyncio.gather(f(...), g(...))` runs calls side by side where that is safe.\n\n\
         ```\n"
    );
    for function in functions {
        describe_function(function, &mut text);
    }
    text.push_str("```");
    text
}

fn describe_function(function: &ToolSpec, text: &mut String) {
    let parameters = parameters(&function.schema);
    let signature: Vec<String> = parameters.iter().map(Parameter::signature).collect();
    let _ = writeln!(
        text,
        "def {}({}) -> str:",
        function.name,
        signature.join(", ")
    );
    let description: String = function.description.chars().take(MAX_DESCRIPTION).collect();
    for line in description.lines().filter(|line| !line.trim().is_empty()) {
        let _ = writeln!(text, "    # {}", line.trim());
    }
    for parameter in &parameters {
        let Parameter {
            name, description, ..
        } = parameter;
        if !description.is_empty() {
            let _ = writeln!(text, "    # {name}: {description}");
        }
        if let Some(schema) = &parameter.schema {
            let _ = writeln!(text, "    # {name} fits this JSON Schema: {schema}");
        }
    }
}

/// Parameter of a function.
struct Parameter {
    name: String,
    kind: &'static str,
    description: String,
    /// Schema of a value with parts, if it is not too long.
    schema: Option<String>,
    is_required: bool,
}

impl Parameter {
    fn signature(&self) -> String {
        let default = if self.is_required { "" } else { " = None" };
        format!("{}: {}{default}", self.name, self.kind)
    }
}

/// Returns the parameters in the order of positional arguments: required ones first.
fn parameters(schema: &Value) -> Vec<Parameter> {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let describe = |(name, schema): (&String, &Value)| Parameter {
        name: name.clone(),
        kind: python_type(schema),
        description: schema["description"]
            .as_str()
            .unwrap_or_default()
            .replace('\n', " "),
        schema: schema_text(schema),
        is_required: required.iter().any(|it| it.as_str() == Some(name)),
    };
    let mut parameters: Vec<Parameter> = properties.iter().map(describe).collect();
    parameters.sort_by_key(|parameter| !parameter.is_required);
    parameters
}

/// Returns the schema of a value with parts as text, if it is not too long.
fn schema_text(schema: &Value) -> Option<String> {
    let has_parts = ["properties", "items", "anyOf", "oneOf", "allOf", "$ref"]
        .iter()
        .any(|key| schema.get(key).is_some());
    let text = has_parts.then(|| schema.to_string());
    text.filter(|text| text.len() <= MAX_SCHEMA_BYTES)
}

fn python_type(schema: &Value) -> &'static str {
    let named = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null"),
        Value::Null => None,
        kind => Some(kind),
    };
    match named.and_then(Value::as_str) {
        Some("string") => "str",
        Some("integer") => "int",
        Some("number") => "float",
        Some("boolean") => "bool",
        Some("array") => "list",
        Some("object") => "dict",
        Some(_) | None => "Any",
    }
}

/// Returns the arguments of a tool, given those of a function call. The error tells the model what does not fit.
pub(super) fn bind_arguments(
    function: &ToolSpec,
    args: Vec<Value>,
    kwargs: Map<String, Value>,
) -> Result<Value, String> {
    let name = &function.name;
    let parameters = parameters(&function.schema);
    if args.len() > parameters.len() {
        let (most, given) = (parameters.len(), args.len());
        return Err(format!(
            "{name}() takes at most {most} positional arguments, {given} were given"
        ));
    }
    let mut bound = Map::new();
    for (parameter, value) in parameters.iter().zip(args) {
        bound.insert(parameter.name.clone(), value);
    }
    for (key, value) in kwargs {
        if bound.contains_key(&key) {
            return Err(format!("{name}() got `{key}` twice"));
        }
        bound.insert(key, value);
    }
    // `None` is how Python leaves out an argument.
    let is_optional = |key: &str| {
        parameters
            .iter()
            .any(|it| it.name == key && !it.is_required)
    };
    bound.retain(|key, value| !value.is_null() || !is_optional(key));
    Ok(Value::Object(bound))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn search() -> ToolSpec {
        ToolSpec::new(
            "search",
            "Searches files.\n\nReturns lines.",
            json!({
                "type": "object",
                "properties": {
                    "limit": {"type": ["integer", "null"]},
                    "pattern": {"type": "string", "description": "Regular expression."},
                    "value": {"items": {"type": "integer"}},
                },
                "required": ["pattern", "value"],
            }),
        )
    }

    // proves: LASH-116
    #[test]
    fn tools_are_described_as_functions() {
        let text = code_instructions(&[search()]);
        let function = "def search(pattern: str, value: Any, limit: int = None) -> str:\n    \
                        # Searches files.\n    # Returns lines.\n    # pattern: Regular expression.\n    \
                        # value fits this JSON Schema: {\"items\":{\"type\":\"integer\"}}\n";
        assert!(text.contains(function), "{text}");
    }

    #[test]
    fn arguments_are_bound_by_position_and_name() {
        let bind = |args: Value, kwargs: Value| {
            let args = args.as_array().cloned().unwrap_or_default();
            let kwargs = kwargs.as_object().cloned().unwrap_or_default();
            bind_arguments(&search(), args, kwargs)
        };
        assert_eq!(
            bind(json!(["x", 1, 2]), json!({})),
            Ok(json!({"pattern": "x", "value": 1, "limit": 2}))
        );
        assert_eq!(
            bind(json!(["x"]), json!({"value": null, "limit": null})),
            Ok(json!({"pattern": "x", "value": null}))
        );
        let twice = bind(json!(["x"]), json!({"pattern": "y"}));
        assert_eq!(twice, Err("search() got `pattern` twice".to_owned()));
        let many = bind(json!([1, 2, 3, 4]), json!({}));
        assert!(many.is_err_and(|error| error.contains("at most 3")));
    }
}
