//! Tests the unstable parts of v1: archiving, session status, system prompts, titles and usage in prompt
//! responses.

mod archive;
mod prompt_usage;
mod status;
mod system_prompt;
mod titles;

use schemars::JsonSchema;
use serde_json::Value;

/// Asserts that the value is valid by the schema of the official types, including unstable members.
fn assert_valid<T: JsonSchema>(value: &Value) {
    let schema = schemars::schema_for!(T).to_value();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let faults: Vec<String> = validator
        .iter_errors(value)
        .map(|fault| fault.to_string())
        .collect();
    assert!(faults.is_empty(), "{faults:?}: {value}");
}
