//! Turns tools into functions of the code, whose names and parameters Python accepts.

use serde_json::{Map, Value};
use std::collections::HashSet;
use turnery_engine::ToolSpec;

/// Maximum length of a parameter's schema. Unit: bytes.
const MAX_SCHEMA_BYTES: usize = 4_000;

/// Words that Python does not accept as names.
const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Tool as a function of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeFunction {
    /// Name in the code.
    pub(super) name: String,
    /// Name of the tool.
    pub(super) tool: String,
    pub(super) description: String,
    /// In the order of positional arguments: required ones first.
    pub(super) parameters: Vec<Parameter>,
}

/// Parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    /// Name in the code.
    name: String,
    /// Name in the tool's schema.
    property: String,
    kind: &'static str,
    pub(super) description: String,
    /// Schema of a value with parts, if it is not too long.
    pub(super) schema: Option<String>,
    is_required: bool,
}

impl Parameter {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn signature(&self) -> String {
        let default = if self.is_required { "" } else { " = None" };
        format!("{}: {}{default}", self.name, self.kind)
    }
}

/// Returns the tools as functions. Two tools never get the same name: one whose own name Python accepts keeps it.
pub(crate) fn code_functions<'a>(
    tools: impl Iterator<Item = &'a ToolSpec> + Clone,
) -> Vec<CodeFunction> {
    let names = python_names(tools.clone().map(|tool| tool.name.as_str()));
    let functions = tools.zip(names).map(|(tool, name)| CodeFunction {
        name,
        tool: tool.name.clone(),
        description: tool.description.clone(),
        parameters: parameters(&tool.schema),
    });
    functions.collect()
}

fn parameters(schema: &Value) -> Vec<Parameter> {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let names = python_names(properties.keys().map(String::as_str));
    let describe = |((property, schema), name): ((&String, &Value), String)| Parameter {
        name,
        property: property.clone(),
        kind: python_type(schema),
        description: schema["description"]
            .as_str()
            .unwrap_or_default()
            .replace('\n', " "),
        schema: schema_text(schema),
        is_required: required.iter().any(|it| it.as_str() == Some(property)),
    };
    let mut parameters: Vec<Parameter> = properties.iter().zip(names).map(describe).collect();
    parameters.sort_by_key(|parameter| !parameter.is_required);
    parameters
}

/// Returns names that Python accepts, one for each of `names`: the same where possible, all different.
fn python_names<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let mut taken: HashSet<String> = names
        .clone()
        .filter(|name| python_name(name) == **name)
        .map(str::to_owned)
        .collect();
    let new_name = |name: &str| {
        let accepted = python_name(name);
        if accepted == name {
            return accepted;
        }
        let numbered = (2..).map(|number| format!("{accepted}_{number}"));
        let mut candidates = std::iter::once(accepted.clone()).chain(numbered);
        let free = candidates.find(|candidate| taken.insert(candidate.clone()));
        free.unwrap_or(accepted)
    };
    names.map(new_name).collect()
}

/// Returns a name that Python accepts: the same if possible.
fn python_name(name: &str) -> String {
    let to_letter = |letter: char| match letter.is_ascii_alphanumeric() {
        true => letter,
        false => '_',
    };
    let letters: String = name.chars().map(to_letter).collect();
    match letters.chars().next() {
        None | Some('0'..='9') => format!("_{letters}"),
        Some(_) if KEYWORDS.contains(&letters.as_str()) => format!("{letters}_"),
        Some(_) => letters,
    }
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

impl CodeFunction {
    /// Returns the arguments of the tool, given those of a function call. The error tells the model what does not
    /// fit.
    pub(super) fn bind_arguments(
        &self,
        args: Vec<Value>,
        kwargs: Map<String, Value>,
    ) -> Result<Value, String> {
        let Self {
            name, parameters, ..
        } = self;
        if args.len() > parameters.len() {
            let (most, given) = (parameters.len(), args.len());
            return Err(format!(
                "{name}() takes at most {most} positional arguments, {given} were given"
            ));
        }
        let mut bound = Map::new();
        for (parameter, value) in parameters.iter().zip(args) {
            bound.insert(parameter.property.clone(), value);
        }
        for (key, value) in kwargs {
            let mut known = parameters.iter();
            let parameter = known.find(|it| it.name == key);
            let property = parameter.map_or(&key, |it| &it.property);
            if bound.contains_key(property) {
                return Err(format!("{name}() got `{key}` twice"));
            }
            bound.insert(property.clone(), value);
        }
        // `None` is how Python leaves out an argument.
        let is_optional = |property: &str| {
            let mut known = parameters.iter();
            known.any(|it| it.property == property && !it.is_required)
        };
        bound.retain(|property, value| !value.is_null() || !is_optional(property));
        Ok(Value::Object(bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str) -> ToolSpec {
        ToolSpec::new(
            name,
            "Searches files.",
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

    fn bind(function: &CodeFunction, args: Value, kwargs: Value) -> Result<Value, String> {
        let args = args.as_array().cloned().unwrap_or_default();
        let kwargs = kwargs.as_object().cloned().unwrap_or_default();
        function.bind_arguments(args, kwargs)
    }

    #[test]
    fn arguments_are_bound_by_position_and_name() {
        let [search] = &code_functions([tool("search")].iter())[..] else {
            panic!("one function for one tool");
        };
        assert_eq!(
            bind(search, json!(["x", 1, 2]), json!({})),
            Ok(json!({"pattern": "x", "value": 1, "limit": 2}))
        );
        assert_eq!(
            bind(search, json!(["x"]), json!({"value": null, "limit": null})),
            Ok(json!({"pattern": "x", "value": null}))
        );
        let twice = bind(search, json!(["x"]), json!({"pattern": "y"}));
        assert_eq!(twice, Err("search() got `pattern` twice".to_owned()));
        let many = bind(search, json!([1, 2, 3, 4]), json!({}));
        assert!(many.is_err_and(|error| error.contains("at most 3")));
    }

    #[test]
    fn names_that_python_does_not_accept_are_replaced() {
        let names = [
            "read_file",
            "mcp__web__get-page",
            "mcp__web__get_page",
            "mcp__web__get.page",
            "3d",
            "import",
            "größe",
            "",
        ];
        let functions = code_functions(names.map(tool).iter());
        let found: Vec<&str> = functions.iter().map(|it| it.name.as_str()).collect();
        let expected = [
            "read_file",
            "mcp__web__get_page_2",
            "mcp__web__get_page",
            "mcp__web__get_page_3",
            "_3d",
            "import_",
            "gr__e",
            "_",
        ];
        assert_eq!(found, expected);
        let tools: Vec<&str> = functions.iter().map(|it| it.tool.as_str()).collect();
        assert_eq!(tools, names);
    }

    #[test]
    fn parameters_that_python_does_not_accept_are_bound_under_another_name() {
        let move_tool = ToolSpec::new(
            "move",
            "Moves.",
            json!({"properties": {"from": {}, "to-path": {}, "to_path": {}}}),
        );
        let [function] = &code_functions([move_tool].iter())[..] else {
            panic!("one function for one tool");
        };
        let expected = json!({"from": 1, "to-path": 2, "to_path": 3});
        let renamed = json!({"from_": 1, "to_path_2": 2, "to_path": 3});
        assert_eq!(bind(function, json!([]), renamed), Ok(expected.clone()));
        assert_eq!(bind(function, json!([1, 2, 3]), json!({})), Ok(expected));
        // Code can pass the tool's own name too, in a dictionary.
        let own = bind(function, json!([]), json!({"from": 1}));
        assert_eq!(own, Ok(json!({"from": 1})));
    }
}
