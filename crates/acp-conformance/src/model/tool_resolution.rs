//! Resolves the tool that a case names to one that the agent offers.
//!
//! A profile lists candidates; the first offered candidate whose placeholders all have a value in the call is
//! used, so that a profile can name different tools for creating and for overwriting a file. Without a
//! candidate, the offered names and schemas are searched; as a last resort, a shell command replaces the
//! tool.

use super::{
    encoder::{ToolArguments, ToolCall},
    request::OfferedTool,
    schema_instance::{minimal_instance, schema_type},
    script::ScriptTool,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Tool of an agent that can stand for a script tool.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ToolCandidate {
    /// Name of the agent's tool.
    pub tool: String,
    /// Argument template. `{path}` in a string stands for the call's `path`, `{path:sh}` for the path quoted
    /// for a shell, `{text:patch}` for the text with `+` before each line and `{text:cut}` with `-`,
    /// `{choices.0}` for the first item of a list. List items whose placeholders have no value in the call
    /// are left out.
    #[serde(default)]
    pub args: Map<String, Value>,
    /// Input template with the same placeholders, for a tool that takes free text.
    pub input: Option<String>,
}

/// Candidates for each script tool, by its name in cases.
pub type ToolCandidates = BTreeMap<String, Vec<ToolCandidate>>;

// Names of tools and parameters of agents, as [`normalize_name`] returns them; the first match wins.
const READ_TOOLS: &str = "read readfile readtextfile viewfile view openfile readfiles fsread cat";
const WRITE_TOOLS: &str =
    "write writefile createfile create writetofile writetextfile editor fswrite savefile";
/// Write tools that may refuse to overwrite a file.
const CREATE_ONLY_TOOLS: &str = "create createfile";
const SHELL_TOOLS: &str = "bash shell execcommand runshellcommand executecommand runcommand runcommands \
    shellcommand runterminalcommand terminal execute exec executebash sh";
const PATH_PARAMS: &str =
    "path filepath absolutepath abspath targetfile filename file paths files filepaths";
const TEXT_PARAMS: &str = "content contents text filetext filecontent newtext data";
const EDIT_TOOLS: &str =
    "edit editfile replace strreplace searchreplace replaceinfile strreplacefile edittextfile";
const OLD_TEXT_PARAMS: &str = "oldstring oldstr oldtext old search find";
const NEW_TEXT_PARAMS: &str = "newstring newstr newtext new replacement replace";
const COMMAND_PARAMS: &str = "command cmd commandline commands script code";

/// Returns the call of the agent's tool; `None` if no offered tool fits.
pub(super) fn resolve_tool_call(
    tool: &ScriptTool,
    arguments: &Value,
    offered_tools: &[OfferedTool],
    candidates: &ToolCandidates,
) -> Option<ToolCall> {
    let mut candidates = candidates.get(&tool.to_string()).into_iter().flatten();
    let found = candidates.find_map(|candidate| {
        let offer = offered_tools
            .iter()
            .find(|offer| offer.name == candidate.tool)?;
        fill_candidate(candidate, offer, arguments)
    });
    found.or_else(|| find_tool_call(tool, arguments, offered_tools))
}

fn call_by_name(name: &str, offer: Option<&OfferedTool>, arguments: &Value) -> ToolCall {
    let free = offer.is_some_and(|offer| offer.schema.is_none());
    ToolCall {
        name: name.to_owned(),
        namespace: offer.and_then(|offer| offer.namespace.clone()),
        arguments: match arguments["input"].as_str().filter(|_| free) {
            Some(input) => ToolArguments::Text(input.to_owned()),
            None => ToolArguments::Object(arguments.clone()),
        },
    }
}

/// Returns true if an offered name is `name` after a separator; agents prefix tools with the server's name.
fn has_name_suffix(offered: &str, name: &str) -> bool {
    let before = offered.strip_suffix(name);
    before.is_some_and(|before| before.ends_with(['_', '-', '.', '/', ':']))
}

/// Fills in a candidate; `None` if a placeholder has no value in the call.
fn fill_candidate(
    candidate: &ToolCandidate,
    offer: &OfferedTool,
    arguments: &Value,
) -> Option<ToolCall> {
    let arguments = match &candidate.input {
        Some(input) => ToolArguments::Text(fill_string(input, arguments)?),
        None => {
            let template = Value::Object(candidate.args.clone());
            add_required_arguments(fill_template(&template, arguments)?, offer)
        }
    };
    Some(ToolCall {
        name: offer.name.clone(),
        namespace: offer.namespace.clone(),
        arguments,
    })
}

/// Adds minimal values for the other arguments that the schema requires.
fn add_required_arguments(given: Value, offer: &OfferedTool) -> ToolArguments {
    let least = offer.schema.as_ref().map(minimal_instance);
    let mut fields = match least {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    if let Value::Object(given) = given {
        fields.extend(given);
    }
    ToolArguments::Object(Value::Object(fields))
}

/// Substitutes the placeholders of a template; `None` if one has no value.
fn fill_template(template: &Value, arguments: &Value) -> Option<Value> {
    Some(match template {
        Value::String(text) => Value::String(fill_string(text, arguments)?),
        Value::Array(items) => {
            let items = items.iter();
            items
                .filter_map(|item| fill_template(item, arguments))
                .collect()
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| {
                let field = fill_template(field, arguments)?;
                Some((name.clone(), field))
            });
            Value::Object(fields.collect::<Option<Map<_, _>>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    })
}

fn fill_string(template: &str, arguments: &Value) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, from)) = rest.split_once('{') {
        text.push_str(before);
        match from
            .split_once('}')
            .filter(|(word, _)| is_placeholder(word))
        {
            Some((word, after)) => {
                text.push_str(&placeholder_value(word, arguments)?);
                rest = after;
            }
            // A literal brace.
            None => {
                text.push('{');
                rest = from;
            }
        }
    }
    text.push_str(rest);
    Some(text)
}

fn is_placeholder(word: &str) -> bool {
    let allowed = |sign: char| sign.is_ascii_alphanumeric() || "_.:".contains(sign);
    !word.is_empty() && word.chars().all(allowed)
}

fn placeholder_value(word: &str, arguments: &Value) -> Option<String> {
    let (path, form) = word.split_once(':').unwrap_or((word, ""));
    let value = arguments
        .pointer(&format!("/{}", path.replace('.', "/")))?
        .as_str()?;
    match form {
        "" => Some(value.to_owned()),
        "sh" => Some(shell_quote(value)),
        "patch" => Some(value.lines().map(|line| format!("+{line}\n")).collect()),
        "cut" => Some(value.lines().map(|line| format!("-{line}\n")).collect()),
        _ => None,
    }
}

/// Quotes a text for a shell.
fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn find_tool_call(
    tool: &ScriptTool,
    arguments: &Value,
    offered_tools: &[OfferedTool],
) -> Option<ToolCall> {
    let word = |name: &str| arguments[name].as_str().unwrap_or_default();
    let (path, text) = (word("path"), word("text"));
    let found = match tool {
        ScriptTool::Read => {
            find_by_exact_or_partial_name(offered_tools, READ_TOOLS, &[(PATH_PARAMS, path)])
        }
        ScriptTool::Write => {
            let found = find_by_exact_or_partial_name(
                offered_tools,
                WRITE_TOOLS,
                &[(PATH_PARAMS, path), (TEXT_PARAMS, text)],
            );
            let is_refused =
                |found: &ToolCall| is_listed(&normalize_name(&found.name), CREATE_ONLY_TOOLS);
            if word("old").is_empty() || found.as_ref().is_some_and(|found| !is_refused(found)) {
                found
            } else {
                let values = [
                    (PATH_PARAMS, path),
                    (OLD_TEXT_PARAMS, word("old")),
                    (NEW_TEXT_PARAMS, text),
                ];
                find_by_exact_or_partial_name(offered_tools, EDIT_TOOLS, &values).or(found)
            }
        }
        ScriptTool::Edit => {
            let values = [
                (PATH_PARAMS, path),
                (OLD_TEXT_PARAMS, word("old")),
                (NEW_TEXT_PARAMS, word("new")),
            ];
            find_by_exact_or_partial_name(offered_tools, EDIT_TOOLS, &values)
        }
        ScriptTool::Shell => find_by_exact_or_partial_name(
            offered_tools,
            SHELL_TOOLS,
            &[(COMMAND_PARAMS, word("command"))],
        ),
        ScriptTool::Mcp(name) => {
            let exact = offered_tools.iter().find(|offer| offer.name == *name);
            let found = exact.or_else(|| {
                offered_tools
                    .iter()
                    .find(|offer| has_name_suffix(&offer.name, name))
            });
            found.map(|offer| call_by_name(&offer.name, Some(offer), arguments))
        }
        ScriptTool::Named(name) => {
            let offer = offered_tools.iter().find(|offer| offer.name == *name);
            Some(call_by_name(name, offer, arguments))
        }
        ScriptTool::Other(name) => {
            let offer = offered_tools.iter().find(|offer| offer.name == *name);
            offer.map(|offer| call_by_name(name, Some(offer), arguments))
        }
    };
    let command = match tool {
        ScriptTool::Read => format!("cat {}", shell_quote(path)),
        ScriptTool::Write => format!("printf %s {} > {}", shell_quote(text), shell_quote(path)),
        ScriptTool::Edit
        | ScriptTool::Shell
        | ScriptTool::Mcp(_)
        | ScriptTool::Named(_)
        | ScriptTool::Other(_) => {
            return found;
        }
    };
    found.or_else(|| {
        find_by_exact_or_partial_name(offered_tools, SHELL_TOOLS, &[(COMMAND_PARAMS, &command)])
    })
}

/// Finds the first tool that takes all these values: one with a name in `names`, or else one whose name
/// contains such a name and that requires as many parameters.
fn find_by_exact_or_partial_name(
    offered_tools: &[OfferedTool],
    names: &str,
    values: &[(&str, &str)],
) -> Option<ToolCall> {
    let by_name = names.split(' ').flat_map(|name| {
        let called = move |offer: &&OfferedTool| normalize_name(&offer.name) == name;
        offered_tools.iter().filter(called)
    });
    // Otherwise accept a name that contains one of `names`, if the tool requires as many arguments as given.
    // Short names are part of too many others.
    let by_shape = offered_tools.iter().filter(|offer| {
        let name = normalize_name(&offer.name);
        let required = offer.schema.as_ref().map(|schema| &schema["required"]);
        let required = required.and_then(Value::as_array).map_or(0, Vec::len);
        let holds = |word: &str| word.len() > 4 && name.contains(word);
        required == values.len() && names.split(' ').any(holds)
    });
    let mut both = by_name.chain(by_shape);
    both.find_map(|offer| build_call(offer, values))
}

fn build_call(offer: &OfferedTool, values: &[(&str, &str)]) -> Option<ToolCall> {
    let schema = offer.schema.as_ref()?;
    let properties = schema["properties"].as_object()?;
    let mut given = Map::new();
    for (names, value) in values {
        let fits = |name: &str| {
            properties
                .keys()
                .find(|property| normalize_name(property) == name)
        };
        let property = names.split(' ').find_map(fits)?;
        given.insert(
            property.clone(),
            coerce_to_schema(&properties[property], value, names),
        );
    }
    Some(ToolCall {
        name: offer.name.clone(),
        namespace: offer.namespace.clone(),
        arguments: add_required_arguments(Value::Object(given), offer),
    })
}

/// Converts a value to the shape of its schema.
fn coerce_to_schema(schema: &Value, value: &str, names: &str) -> Value {
    if schema_type(schema) != "array" {
        return value.into();
    }
    let item = &schema["items"];
    if schema_type(item) != "object" {
        // A command line as a list of words must be run by a shell.
        let words = if names == COMMAND_PARAMS {
            vec!["bash", "-c", value]
        } else {
            vec![value]
        };
        return words.into();
    }
    let mut fields = minimal_instance(item);
    let properties = item["properties"].as_object();
    let property = properties.and_then(|all| {
        all.keys()
            .find(|property| is_listed(&normalize_name(property), names))
    });
    if let Some(property) = property {
        fields[property] = value.into();
    }
    json!([fields])
}

fn is_listed(name: &str, names: &str) -> bool {
    names.split(' ').any(|listed| listed == name)
}

/// Returns the ASCII letters and digits of a name in lower case.
fn normalize_name(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests;
