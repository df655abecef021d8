//! From the tool that a case names to one that the agent really offers.
//!
//! A profile lists candidates; the first that the request offers is taken. Without one the offered
//! names and schemas are searched, and at last a shell does what the missing tool would have done.

use super::{
    asked::Offered,
    instance::{instance, kind},
    script::Tool,
    spoken::{Arguments, Called},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A tool of an agent that can stand for an abstract one.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Its name.
    pub tool: String,
    /// Its arguments, with `{path}`, `{text}` and `{command}` in their strings; `{path:sh}` is quoted
    /// for a shell, `{text:patch}` has `+` before each line.
    #[serde(default)]
    pub args: Map<String, Value>,
    /// For a tool that takes free text: the text, with the same words in it.
    pub input: Option<String>,
}

/// The candidates for each abstract tool.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Candidates {
    /// For `read`.
    #[serde(default)]
    pub read: Vec<Candidate>,
    /// For `write`.
    #[serde(default)]
    pub write: Vec<Candidate>,
    /// For `shell`.
    #[serde(default)]
    pub shell: Vec<Candidate>,
}

const READERS: &[&str] = &[
    "read",
    "readfile",
    "readtextfile",
    "viewfile",
    "view",
    "openfile",
    "readfiles",
    "fsread",
    "cat",
];
const WRITERS: &[&str] = &[
    "write",
    "writefile",
    "createfile",
    "create",
    "writetofile",
    "writetextfile",
    "editor",
    "fswrite",
    "savefile",
];
const SHELLS: &[&str] = &[
    "bash",
    "shell",
    "execcommand",
    "runshellcommand",
    "executecommand",
    "runcommand",
    "runcommands",
    "shellcommand",
    "runterminalcommand",
    "terminal",
    "execute",
    "exec",
    "executebash",
    "sh",
];
const PATHS: &[&str] = &[
    "path",
    "filepath",
    "absolutepath",
    "abspath",
    "targetfile",
    "filename",
    "file",
    "paths",
    "files",
    "filepaths",
];
const TEXTS: &[&str] = &[
    "content",
    "contents",
    "text",
    "filetext",
    "filecontent",
    "newtext",
    "data",
];
const COMMANDS: &[&str] = &[
    "command",
    "cmd",
    "commandline",
    "commands",
    "script",
    "code",
];

/// The call of the agent's own tool; none if no tool on offer fits.
pub(super) fn resolve(
    tool: &Tool,
    arguments: &Value,
    offered: &[Offered],
    candidates: &Candidates,
) -> Option<Called> {
    let listed = match tool {
        Tool::Named(name) => {
            let found = offered.iter().find(|offer| offer.name == *name);
            return Some(named(name, found, arguments));
        }
        Tool::Mcp(name) => {
            let found = offered.iter().find(|offer| offer.name == *name);
            let found =
                found.or_else(|| offered.iter().find(|offer| ends_in(&offer.name, name)))?;
            return Some(named(&found.name, Some(found), arguments));
        }
        Tool::Read => &candidates.read,
        Tool::Write => &candidates.write,
        Tool::Shell => &candidates.shell,
    };
    for candidate in listed {
        if let Some(offer) = offered.iter().find(|offer| offer.name == candidate.tool) {
            return Some(filled(candidate, offer, arguments));
        }
    }
    searched(tool, arguments, offered)
}

fn named(name: &str, offer: Option<&Offered>, arguments: &Value) -> Called {
    let free = offer.is_some_and(|offer| offer.schema.is_none());
    Called {
        name: name.to_owned(),
        namespace: offer.and_then(|offer| offer.namespace.clone()),
        arguments: match arguments["input"].as_str().filter(|_| free) {
            Some(input) => Arguments::Free(input.to_owned()),
            None => Arguments::Fields(arguments.clone()),
        },
    }
}

/// Agents put the server's name before the tool's, each with signs of its own between.
fn ends_in(offered: &str, name: &str) -> bool {
    let before = offered.strip_suffix(name);
    before.is_some_and(|before| before.ends_with(['_', '-', '.', '/', ':']))
}

fn filled(candidate: &Candidate, offer: &Offered, arguments: &Value) -> Called {
    let arguments = match &candidate.input {
        Some(input) => Arguments::Free(fill(input, arguments)),
        None => {
            let template = Value::Object(candidate.args.clone());
            complete(fill_value(&template, arguments), offer)
        }
    };
    Called {
        name: offer.name.clone(),
        namespace: offer.namespace.clone(),
        arguments,
    }
}

/// What the schema requires besides is put in.
fn complete(given: Value, offer: &Offered) -> Arguments {
    let least = offer.schema.as_ref().map(instance);
    let mut fields = match least {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    if let Value::Object(given) = given {
        fields.extend(given);
    }
    Arguments::Fields(Value::Object(fields))
}

fn fill_value(template: &Value, arguments: &Value) -> Value {
    match template {
        Value::String(text) => Value::String(fill(text, arguments)),
        Value::Array(items) => items
            .iter()
            .map(|item| fill_value(item, arguments))
            .collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), fill_value(field, arguments)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    }
}

fn fill(template: &str, arguments: &Value) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        let (before, from) = rest.split_at(start);
        text.push_str(before);
        let word = from.find('}').map(|end| &from[1..end]);
        match word.and_then(|word| Some((word, value_of(word, arguments)?))) {
            Some((word, value)) => {
                text.push_str(&value);
                rest = &from[word.len() + 2..];
            }
            // A brace that is only a brace.
            None => {
                text.push('{');
                rest = &from[1..];
            }
        }
    }
    text.push_str(rest);
    text
}

fn value_of(word: &str, arguments: &Value) -> Option<String> {
    let (name, form) = word.split_once(':').unwrap_or((word, ""));
    let value = arguments.get(name)?.as_str()?;
    match form {
        "" => Some(value.to_owned()),
        "sh" => Some(quoted(value)),
        "patch" => Some(value.lines().map(|line| format!("+{line}\n")).collect()),
        _ => None,
    }
}

/// Quoted for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn searched(tool: &Tool, arguments: &Value, offered: &[Offered]) -> Option<Called> {
    let word = |name: &str| arguments[name].as_str().unwrap_or_default();
    let (path, text) = (word("path"), word("text"));
    let found = match tool {
        Tool::Read => search(offered, READERS, &[(PATHS, path)]),
        Tool::Write => search(offered, WRITERS, &[(PATHS, path), (TEXTS, text)]),
        Tool::Shell => search(offered, SHELLS, &[(COMMANDS, word("command"))]),
        Tool::Mcp(_) | Tool::Named(_) => None,
    };
    let command = match tool {
        Tool::Read => format!("cat {}", quoted(path)),
        Tool::Write => format!("printf %s {} > {}", quoted(text), quoted(path)),
        Tool::Shell | Tool::Mcp(_) | Tool::Named(_) => return found,
    };
    found.or_else(|| search(offered, SHELLS, &[(COMMANDS, &command)]))
}

/// The first tool by name, or else by its properties, that takes all these values.
fn search(offered: &[Offered], names: &[&str], values: &[(&[&str], &str)]) -> Option<Called> {
    let by_name = names.iter().flat_map(|name| {
        let called = move |offer: &&Offered| letters(&offer.name) == *name;
        offered.iter().filter(called)
    });
    // The name says nothing: one that holds a fitting word, and requires nothing but these.
    let by_shape = offered.iter().filter(|offer| {
        let name = letters(&offer.name);
        let required = offer.schema.as_ref().map(|schema| &schema["required"]);
        let required = required.and_then(Value::as_array).map_or(0, Vec::len);
        required == values.len() && names.iter().any(|word| name.contains(word))
    });
    let mut both = by_name.chain(by_shape);
    both.find_map(|offer| take(offer, values))
}

fn take(offer: &Offered, values: &[(&[&str], &str)]) -> Option<Called> {
    let schema = offer.schema.as_ref()?;
    let properties = schema["properties"].as_object()?;
    let mut given = Map::new();
    for (names, value) in values {
        let fits = |name: &&str| {
            let property = properties
                .keys()
                .find(|property| letters(property) == **name);
            property.cloned()
        };
        let property = names.iter().find_map(fits)?;
        given.insert(
            property.clone(),
            shaped(&properties[&property], value, names),
        );
    }
    Some(Called {
        name: offer.name.clone(),
        namespace: offer.namespace.clone(),
        arguments: complete(Value::Object(given), offer),
    })
}

/// A value in the shape that its schema asks for.
fn shaped(schema: &Value, value: &str, names: &[&str]) -> Value {
    if kind(schema) != "array" {
        return value.into();
    }
    let item = &schema["items"];
    if kind(item) != "object" {
        // One command of many words is one for a shell.
        let words = if names == COMMANDS {
            vec!["bash", "-c", value]
        } else {
            vec![value]
        };
        return words.into();
    }
    let mut fields = instance(item);
    let properties = item["properties"].as_object();
    let property = properties.and_then(|all| {
        all.keys()
            .find(|property| names.contains(&letters(property).as_str()))
    });
    if let Some(property) = property {
        fields[property] = value.into();
    }
    json!([fields])
}

/// A name without case and signs.
fn letters(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests;
