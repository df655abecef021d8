//! Prints the JSON Schema of `config.toml` for editors.

use super::Config;
use schemars::{Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::{Value, json};
use std::{io::Write as _, process::ExitCode};

/// Returns the schema. Every key may be left out, and none is null, since TOML has no such value.
fn schema() -> Schema {
    let without_null = RecursiveTransform(|schema: &mut Schema| {
        schema.remove("default");
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                schema.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(all)) = schema.get_mut("anyOf") {
            all.retain(|schema| *schema != json!({"type": "null"}));
            if let [Value::Object(only)] = all.as_slice() {
                let only = only.clone();
                schema.remove("anyOf");
                schema.ensure_object().extend(only);
            }
        }
    });
    SchemaSettings::draft2020_12()
        .with_transform(without_null)
        .into_generator()
        .into_root_schema_for::<Config>()
}

/// Returns the schema as formatted JSON.
fn text() -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(&schema())? + "\n")
}

/// Prints the schema.
pub(crate) fn write() -> anyhow::Result<ExitCode> {
    std::io::stdout().lock().write_all(text()?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
pub(crate) mod tests;
