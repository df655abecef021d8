//! Checks that the schema in `schemas/` matches the types and the examples. `UPDATE_SCHEMAS=1` rewrites it.

use std::{fs, path::PathBuf};
use turnery_models::{ScriptedModel, scenario_schema};

fn workspace_root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn committed_schema_matches_the_types() {
    let file = workspace_root().join("schemas/scenario.json");
    let schema = serde_json::to_string_pretty(&scenario_schema()).expect("JSON") + "\n";
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        fs::write(&file, &schema).expect("a writable file");
    }
    let committed = fs::read_to_string(&file).expect("schemas/scenario.json");
    assert!(
        committed == schema,
        "schemas/scenario.json is out of date: run the test again with UPDATE_SCHEMAS=1"
    );
}

#[test]
fn examples_fit_the_schema_and_play() {
    let schema = serde_json::to_value(scenario_schema()).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let mut seen = 0;
    for entry in fs::read_dir(workspace_root().join("examples/scenarios")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("text");
        let value = serde_json::from_str(&text).expect("JSON");
        let faults: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(faults, Vec::<String>::new(), "{}", path.display());
        ScriptedModel::open(&path).expect("a scenario");
        seen += 1;
    }
    assert!(seen > 0, "no examples");
}

#[test]
fn schema_rejects_what_the_reader_rejects() {
    let schema = serde_json::to_value(scenario_schema()).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for (text, fits) in [
        (
            r#"{"answers": [{"steps": [{"text": "a", "chunks": 2}]}]}"#,
            true,
        ),
        (
            r#"{"answers": [{"steps": [{"text": "a", "delay_ms": 1}]}]}"#,
            false,
        ),
        (r#"{"answers": [{"steps": [{"chunks": 1}]}]}"#, false),
        (r#"{"answers": [{"stepps": []}]}"#, false),
        (
            r#"{"answers": [{"end": {"error": {"kind": "auth"}}}]}"#,
            true,
        ),
        (
            r#"{"answers": [{"end": {"error": {"kind": "odd"}}}]}"#,
            false,
        ),
    ] {
        let value = serde_json::from_str(text).expect("JSON");
        assert_eq!(validator.is_valid(&value), fits, "{text}");
    }
}
