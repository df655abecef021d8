//! From the tool that a case names to one that the agent really offers.
//!
//! A profile lists candidates; the first that the request offers is taken, if the call says all that it names: so
//! a file that is there may be written over by another tool than a new one. Without one the offered names and
//! schemas are searched, and at last a shell does what the missing tool would have done.

use super::{
    asked::Offered,
    instance::{instance, kind},
    script::Tool,
    spoken::{Arguments, Called},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A tool of an agent that can stand for an abstract one.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Its name.
    pub tool: String,
    /// Its arguments. `{path}` in a string stands for the call's own `path`, `{path:sh}` for it quoted for a
    /// shell, `{text:patch}` for a text with `+` before each line and `{text:cut}` with `-`, `{choices.0}` for the first of a list. What
    /// stands in a list and names something that the call does not say is left out.
    #[serde(default)]
    pub args: Map<String, Value>,
    /// For a tool that takes free text: the text, with the same words in it.
    pub input: Option<String>,
}

/// The candidates for each abstract tool, by its name in cases.
pub type Candidates = BTreeMap<String, Vec<Candidate>>;

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
/// Those of them that may refuse a file that is there.
const CREATORS: &[&str] = &["create", "createfile"];
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
const EDITORS: &[&str] = &[
    "edit",
    "editfile",
    "replace",
    "strreplace",
    "searchreplace",
    "replaceinfile",
    "strreplacefile",
    "edittextfile",
];
const OLDS: &[&str] = &["oldstring", "oldstr", "oldtext", "old", "search", "find"];
const NEWS: &[&str] = &[
    "newstring",
    "newstr",
    "newtext",
    "new",
    "replacement",
    "replace",
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
    let mut candidates = candidates.get(&tool.to_string()).into_iter().flatten();
    let found = candidates.find_map(|candidate| {
        let offer = offered.iter().find(|offer| offer.name == candidate.tool)?;
        filled(candidate, offer, arguments)
    });
    found.or_else(|| searched(tool, arguments, offered))
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

/// None if the candidate wants to know more than the call says.
fn filled(candidate: &Candidate, offer: &Offered, arguments: &Value) -> Option<Called> {
    let arguments = match &candidate.input {
        Some(input) => Arguments::Free(fill(input, arguments)?),
        None => {
            let template = Value::Object(candidate.args.clone());
            complete(fill_value(&template, arguments)?, offer)
        }
    };
    Some(Called {
        name: offer.name.clone(),
        namespace: offer.namespace.clone(),
        arguments,
    })
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

/// None if a string in it names what is not there.
fn fill_value(template: &Value, arguments: &Value) -> Option<Value> {
    Some(match template {
        Value::String(text) => Value::String(fill(text, arguments)?),
        Value::Array(items) => {
            let items = items.iter();
            items
                .filter_map(|item| fill_value(item, arguments))
                .collect()
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| {
                let field = fill_value(field, arguments)?;
                Some((name.clone(), field))
            });
            Value::Object(fields.collect::<Option<Map<_, _>>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => template.clone(),
    })
}

fn fill(template: &str, arguments: &Value) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, from)) = rest.split_once('{') {
        text.push_str(before);
        match from.split_once('}').filter(|(word, _)| is_word(word)) {
            Some((word, after)) => {
                text.push_str(&value_of(word, arguments)?);
                rest = after;
            }
            // A brace that is only a brace.
            None => {
                text.push('{');
                rest = from;
            }
        }
    }
    text.push_str(rest);
    Some(text)
}

fn is_word(word: &str) -> bool {
    let allowed = |sign: char| sign.is_ascii_alphanumeric() || "_.:".contains(sign);
    !word.is_empty() && word.chars().all(allowed)
}

fn value_of(word: &str, arguments: &Value) -> Option<String> {
    let (path, form) = word.split_once(':').unwrap_or((word, ""));
    let value = arguments
        .pointer(&format!("/{}", path.replace('.', "/")))?
        .as_str()?;
    match form {
        "" => Some(value.to_owned()),
        "sh" => Some(quoted(value)),
        "patch" => Some(value.lines().map(|line| format!("+{line}\n")).collect()),
        "cut" => Some(value.lines().map(|line| format!("-{line}\n")).collect()),
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
        Tool::Write => {
            let found = search(offered, WRITERS, &[(PATHS, path), (TEXTS, text)]);
            let is_refused = |found: &Called| CREATORS.contains(&letters(&found.name).as_str());
            if word("old").is_empty() || found.as_ref().is_some_and(|found| !is_refused(found)) {
                found
            } else {
                let values = [(PATHS, path), (OLDS, word("old")), (NEWS, text)];
                search(offered, EDITORS, &values).or(found)
            }
        }
        Tool::Edit => {
            let values = [(PATHS, path), (OLDS, word("old")), (NEWS, word("new"))];
            search(offered, EDITORS, &values)
        }
        Tool::Shell => search(offered, SHELLS, &[(COMMANDS, word("command"))]),
        Tool::Mcp(name) => {
            let exact = offered.iter().find(|offer| offer.name == *name);
            let found = exact.or_else(|| offered.iter().find(|offer| ends_in(&offer.name, name)));
            found.map(|offer| named(&offer.name, Some(offer), arguments))
        }
        Tool::Named(name) => {
            let offer = offered.iter().find(|offer| offer.name == *name);
            Some(named(name, offer, arguments))
        }
        Tool::Other(name) => {
            let offer = offered.iter().find(|offer| offer.name == *name);
            offer.map(|offer| named(name, Some(offer), arguments))
        }
    };
    let command = match tool {
        Tool::Read => format!("cat {}", quoted(path)),
        Tool::Write => format!("printf %s {} > {}", quoted(text), quoted(path)),
        Tool::Edit | Tool::Shell | Tool::Mcp(_) | Tool::Named(_) | Tool::Other(_) => {
            return found;
        }
    };
    found.or_else(|| search(offered, SHELLS, &[(COMMANDS, &command)]))
}

/// The first tool by name, or else by its properties, that takes all these values.
fn search(offered: &[Offered], names: &[&str], values: &[(&[&str], &str)]) -> Option<Called> {
    let by_name = names.iter().flat_map(|name| {
        let called = move |offer: &&Offered| letters(&offer.name) == *name;
        offered.iter().filter(called)
    });
    // The name is not just one of these: one that holds it, and requires nothing but these values. The
    // short ones are in too many names.
    let by_shape = offered.iter().filter(|offer| {
        let name = letters(&offer.name);
        let required = offer.schema.as_ref().map(|schema| &schema["required"]);
        let required = required.and_then(Value::as_array).map_or(0, Vec::len);
        let holds = |word: &&&str| word.len() > 4 && name.contains(**word);
        required == values.len() && names.iter().any(|word| holds(&word))
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
