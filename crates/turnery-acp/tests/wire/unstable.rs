//! Unstable parts of the first version: each with a client that knows it and one that does not, and what is
//! said held against the unstable schema.

mod archive;
mod status;
mod system;
mod titles;
mod usage;

use schemars::JsonSchema;
use serde_json::Value;

/// Valid by the schema of the official types, with all that is unstable in it.
fn valid<T: JsonSchema>(value: &Value) {
    let schema = schemars::schema_for!(T).to_value();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let faults: Vec<String> = validator
        .iter_errors(value)
        .map(|fault| fault.to_string())
        .collect();
    assert!(faults.is_empty(), "{faults:?}: {value}");
}
