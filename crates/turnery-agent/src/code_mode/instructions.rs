//! Tells the model how to write code, and describes the tools as Python functions.

use super::{
    code_block::LANGUAGE,
    functions::{CodeFunction, Parameter},
};
use std::fmt::Write as _;

/// Maximum number of characters of a function's description.
const MAX_DESCRIPTION: usize = 600;

/// Returns the part of the system prompt that explains code mode.
pub(super) fn code_instructions(functions: &[CodeFunction]) -> String {
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

fn describe_function(function: &CodeFunction, text: &mut String) {
    let signature: Vec<String> = function
        .parameters
        .iter()
        .map(Parameter::signature)
        .collect();
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
    for parameter in &function.parameters {
        let (name, description) = (parameter.name(), &parameter.description);
        if !description.is_empty() {
            let _ = writeln!(text, "    # {name}: {description}");
        }
        if let Some(schema) = &parameter.schema {
            let _ = writeln!(text, "    # {name} fits this JSON Schema: {schema}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::functions::code_functions;
    use super::*;
    use serde_json::json;
    use turnery_engine::ToolSpec;

    // proves: LASH-116
    #[test]
    fn tools_are_described_as_functions() {
        let search = ToolSpec::new(
            "search-files",
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
        );
        let text = code_instructions(&code_functions([search].iter()));
        let function = "def search_files(pattern: str, value: Any, limit: int = None) -> str:\n    \
                        # Searches files.\n    # Returns lines.\n    # pattern: Regular expression.\n    \
                        # value fits this JSON Schema: {\"items\":{\"type\":\"integer\"}}\n";
        assert!(text.contains(function), "{text}");
    }
}
