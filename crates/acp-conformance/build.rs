//! Puts into the program what it carries along: all files of `conformance/cases`, so that none is forgotten, and
//! the official JSON Schemas of both versions, made from the types of the official crate. All of its unstable parts are
//! in them, so no agent is blamed for a feature that is not stable yet.

use agent_client_protocol_schema::{v1, v2};
use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::json;
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
    fs::write(out.join("v1.json"), definitions(first))?;
    let mut second = SchemaSettings::draft2020_12().into_generator();
    second.subschema_for::<v2::AgentRequest>();
    second.subschema_for::<v2::AgentResponse>();
    second.subschema_for::<v2::AgentNotification>();
    second.subschema_for::<v2::ClientRequest>();
    second.subschema_for::<v2::ClientResponse>();
    second.subschema_for::<v2::ClientNotification>();
    second.subschema_for::<v2::ProtocolLevelNotification>();
    second.subschema_for::<v2::Error>();
    fs::write(out.join("v2.json"), definitions(second))?;
    Ok(())
}

fn definitions(mut generator: SchemaGenerator) -> String {
    json!({"$defs": generator.take_definitions(true)}).to_string()
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
