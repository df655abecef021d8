//! Derives a tool's schema from its argument type, and parses arguments into that type.

use crate::call_errors::validation_error;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Deserialize;
use serde_json::Value;
use turnery_engine::{ToolError, ToolSpec};

/// Returns the specification of a tool with arguments of type `A`.
#[must_use]
pub fn spec_for<A: JsonSchema>(name: &str, description: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: schema_for::<A>().into(),
    }
}

/// Returns the schema of `A`: self-contained, without anything of no use to a model, since it is sent with every
/// request.
pub(crate) fn schema_for<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<A>()
        .to_value();
    slim_schema(&mut schema);
    schema
}

/// Parses normalised arguments as an `A`, which may borrow long texts from them.
pub fn parse_args<'a, A: Deserialize<'a>>(args: &'a Value) -> Result<A, ToolError> {
    A::deserialize(args)
        .map_err(|error| validation_error(format!("the arguments do not fit: {error}")))
}

fn slim_schema(schema: &mut Value) {
    let Value::Object(object) = schema else {
        return;
    };
    for noise in ["$schema", "title", "format", "default"] {
        object.remove(noise);
    }
    // Derived from unsigned types.
    if object.get("minimum").is_some_and(|it| it == 0) {
        object.remove("minimum");
    }
    if object
        .get("properties")
        .is_some_and(|all| all == &serde_json::json!({}))
    {
        object.remove("properties");
    }
    // An optional argument may be omitted; that it may also be null need not be stated.
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_mut_slice() {
            let only = only.take();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(variants)) = object.get_mut("anyOf") {
        variants.retain(|variant| variant != &serde_json::json!({"type": "null"}));
        if let [Value::Object(only)] = variants.as_mut_slice() {
            let only = std::mem::take(only);
            object.remove("anyOf");
            object.extend(only);
        }
    }
    if let Some(Value::Array(values)) = object.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(slim_schema);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = object.get_mut(inner) {
            slim_schema(inner);
        }
    }
}
