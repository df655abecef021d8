//! Puts into the program what it carries along: all files of `conformance/cases`, so that none is forgotten, and
//! the official JSON Schemas of both versions, made from the types of the official crate. Its unstable parts are in
//! them, each under a name of its own: `x-unstable`, so that an agent may use those that were agreed on.

use agent_client_protocol_schema::{v1, v2};
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Value, json};
use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    cases(&out)?;
    let mut first = SchemaSettings::draft2020_12().into_generator();
    first.subschema_for::<v1::AgentRequest>();
    first.subschema_for::<v1::AgentResponse>();
    first.subschema_for::<v1::AgentNotification>();
    first.subschema_for::<v1::ClientRequest>();
    first.subschema_for::<v1::ClientResponse>();
    first.subschema_for::<v1::ClientNotification>();
    first.subschema_for::<v1::ProtocolLevelNotification>();
    first.subschema_for::<v1::Error>();
    fs::write(out.join("v1.json"), definitions(first)?)?;
    let mut second = SchemaSettings::draft2020_12().into_generator();
    second.subschema_for::<v2::AgentRequest>();
    second.subschema_for::<v2::AgentResponse>();
    second.subschema_for::<v2::AgentNotification>();
    second.subschema_for::<v2::ClientRequest>();
    second.subschema_for::<v2::ClientResponse>();
    second.subschema_for::<v2::ClientNotification>();
    second.subschema_for::<v2::ProtocolLevelNotification>();
    second.subschema_for::<v2::Error>();
    fs::write(out.join("v2.json"), definitions(second)?)?;
    Ok(())
}

fn definitions(mut generator: SchemaGenerator) -> Result<String, Box<dyn Error>> {
    let mut schema = json!({"$defs": generator.take_definitions(true)});
    let marks = schema.to_string().matches(UNSTABLE).count();
    let named = name_unstable(&mut schema["$defs"]);
    if named != marks {
        return Err(
            format!("{marks} parts of the schema are unstable, {named} have a name").into(),
        );
    }
    Ok(schema.to_string())
}

/// The official documentation begins so where a part is unstable.
const UNSTABLE: &str = "**UNSTABLE**";

/// A definition is called by its name, a member and a variant `Definition.member`. Says how many have got a name.
fn name_unstable(definitions: &mut Value) -> usize {
    let mut named = 0;
    let mut name = |part: &mut Value, name: String| {
        let description = part["description"].as_str();
        if description.is_some_and(|text| text.starts_with(UNSTABLE)) {
            part["x-unstable"] = name.into();
            named += 1;
        }
    };
    for (of, definition) in definitions.as_object_mut().into_iter().flatten() {
        name(definition, of.clone());
        let members = definition.get_mut("properties");
        for (key, member) in members.and_then(Value::as_object_mut).into_iter().flatten() {
            name(member, format!("{of}.{key}"));
        }
        for key in ["oneOf", "anyOf"] {
            let variants = definition.get_mut(key).and_then(Value::as_array_mut);
            for variant in variants.into_iter().flatten() {
                let members = variant["properties"].as_object();
                let mut tags = members.into_iter().flatten();
                let tag = tags.find_map(|(_, member)| member["const"].as_str());
                let tag = format!("{of}.{}", tag.unwrap_or_default());
                name(variant, tag);
            }
        }
    }
    named
}

fn cases(out: &Path) -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../conformance/cases");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "case")
        {
            files.push(path);
        }
    }
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        list.push_str(&format!("({name:?}, include_str!({file:?})),\n"));
    }
    list.push(']');
    fs::write(out.join("cases.rs"), list)?;
    Ok(())
}
