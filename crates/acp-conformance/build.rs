//! Puts into the program what it carries along: all files of `conformance/cases` and `conformance/profiles`, so that
//! none is forgotten, and the official JSON Schemas of both versions, made from the types of the official crate. Its unstable parts are in
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
    println!("cargo::rerun-if-changed=build.rs");
    embed_folder(&out, "cases", "case", Path::to_owned)?;
    embed_folder(&out, "profiles", "toml", |file| file.with_extension(""))?;
    // The types of a version have the same names.
    macro_rules! write_schema {
        ($version:ident) => {
            let mut generator = SchemaSettings::draft2020_12().into_generator();
            generator.subschema_for::<$version::AgentRequest>();
            generator.subschema_for::<$version::AgentResponse>();
            generator.subschema_for::<$version::AgentNotification>();
            generator.subschema_for::<$version::ClientRequest>();
            generator.subschema_for::<$version::ClientResponse>();
            generator.subschema_for::<$version::ClientNotification>();
            generator.subschema_for::<$version::ProtocolLevelNotification>();
            generator.subschema_for::<$version::Error>();
            let file = out.join(concat!(stringify!($version), ".json"));
            fs::write(file, definitions(generator)?)?;
        };
    }
    write_schema!(v1);
    write_schema!(v2);
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

/// Writes a list of the names and texts of a folder's files, in the order of their keys.
fn embed_folder(
    out: &Path,
    folder: &str,
    extension: &str,
    key: fn(&Path) -> PathBuf,
) -> Result<(), Box<dyn Error>> {
    let path = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../conformance");
    let path = path.join(folder);
    println!("cargo::rerun-if-changed={}", path.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(&path)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files.sort_by_key(|file| key(file));
    let mut list = String::from("&[\n");
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        list.push_str(&format!("({name:?}, include_str!({file:?})),\n"));
    }
    list.push(']');
    fs::write(out.join(format!("{folder}.rs")), list)?;
    Ok(())
}
