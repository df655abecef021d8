//! Checks that crates depend only on the layers below, as listed in `LAYERS`, and that the engine stays free
//! of IO and protocol terms. The diagram in ARCHITECTURE.md shows the same layers and is kept up to date by
//! hand.

use std::{collections::BTreeSet, fs};

/// Workspace crates, and the workspace crates that each may depend on, separated by spaces.
const LAYERS: &[(&str, &str)] = &[
    ("turnery-engine", ""),
    ("turnery-models", "turnery-engine"),
    ("turnery-tools", "turnery-engine"),
    ("turnery-store", "turnery-engine"),
    ("turnery-code", ""),
    ("turnery-agent", BELOW_THE_AGENT),
    ("turnery-sdk", BELOW_THE_SDK),
    ("turnery-acp", BELOW_THE_SDK),
    ("turnery", BELOW_THE_PROGRAM),
    ("acp-conformance", ""),
    ("acp-conformance-dev", "acp-conformance"),
    ("model-api-rules", ""),
    ("faulty-disk", ""),
    ("tidy", ""),
    ("xtask", "tidy"),
];

const BELOW_THE_AGENT: &str =
    "turnery-engine turnery-models turnery-tools turnery-store turnery-code";
const BELOW_THE_SDK: &str =
    "turnery-engine turnery-models turnery-tools turnery-store turnery-code turnery-agent";
const BELOW_THE_PROGRAM: &str = "turnery-engine turnery-models turnery-tools turnery-store turnery-code turnery-agent turnery-acp";

/// Crate whose tests also embed the agent, because they have the executable that runs code.
const EMBEDS_IN_TESTS: &str = "turnery";

/// Crates whose tests may use the suite's oracle.
const JUDGED: &[&str] = &["turnery-acp", "turnery"];

/// Crate whose tests may simulate disks.
const HAS_DISKS: &str = "turnery-store";

/// Crates whose tests may judge requests to models.
const SENDS_REQUESTS: &[&str] = &["turnery-models", "turnery-agent", "turnery-sdk"];

/// External crates that the engine may use: data types only, no runtime, clock, randomness or IO.
const ENGINE: &[&str] = &["chrono", "schemars", "serde", "serde_json", "thiserror"];

fn manifest(name: &str) -> toml::Table {
    let path = tidy::root().join("crates").join(name).join("Cargo.toml");
    let text = fs::read_to_string(&path).expect("a manifest");
    text.parse().expect("a manifest is TOML")
}

fn dependencies(name: &str, table: &str) -> BTreeSet<String> {
    let manifest = manifest(name);
    match manifest.get(table) {
        Some(found) => found.as_table().expect("a table").keys().cloned().collect(),
        None => BTreeSet::new(),
    }
}

#[test]
fn crates_depend_only_on_the_layers_below() {
    let ours: BTreeSet<&str> = LAYERS.iter().map(|(name, _)| *name).collect();
    for (name, below) in LAYERS {
        for table in ["dependencies", "dev-dependencies", "build-dependencies"] {
            for dependency in dependencies(name, table) {
                let is_oracle = dependency == "acp-conformance"
                    && table == "dev-dependencies"
                    && JUDGED.contains(name);
                let is_embedded = dependency == "turnery-sdk"
                    && table == "dev-dependencies"
                    && *name == EMBEDS_IN_TESTS;
                let is_judge = dependency == "model-api-rules"
                    && table == "dev-dependencies"
                    && SENDS_REQUESTS.contains(name);
                let is_disk = dependency == "faulty-disk"
                    && table == "dev-dependencies"
                    && *name == HAS_DISKS;
                assert!(
                    !ours.contains(&*dependency)
                        || below.split(' ').any(|it| it == dependency)
                        || dependency == *name
                        || is_oracle
                        || is_embedded
                        || is_judge
                        || is_disk,
                    "{name} may not depend on {dependency} ({table})"
                );
            }
        }
    }
}

#[test]
fn published_crates_depend_on_published_ones() {
    let is_published = |name: &str| {
        let package = &manifest(name)["package"];
        let is_described = package.get("description").is_some();
        let is_published = package["publish"].as_bool() == Some(true);
        assert!(!is_published || is_described, "{name} has no description");
        is_published
    };
    assert!(is_published("turnery-sdk"));
    for (name, _) in LAYERS.iter().filter(|(name, _)| is_published(name)) {
        for dependency in dependencies(name, "dependencies") {
            let is_ours = LAYERS.iter().any(|(ours, _)| *ours == dependency);
            assert!(
                !is_ours || is_published(&dependency),
                "{name}: {dependency}"
            );
        }
    }
}

#[test]
fn every_crate_has_its_layer() {
    let crates = fs::read_dir(tidy::root().join("crates")).expect("crates/");
    let found: BTreeSet<String> = crates
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join("Cargo.toml").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let drawn: BTreeSet<String> = LAYERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found, drawn);
}

// proves: LASH-38
#[test]
fn the_engine_has_no_runtime_clock_randomness_or_io() {
    let used = dependencies("turnery-engine", "dependencies");
    let allowed: BTreeSet<String> = ENGINE.iter().map(|name| (*name).to_owned()).collect();
    assert!(
        used.is_subset(&allowed),
        "the engine may not use {:?}",
        used.difference(&allowed)
    );
    for file in tidy::rust_files() {
        if !file.path.starts_with("crates/turnery-engine/src/") {
            continue;
        }
        for word in [
            "std::fs",
            "std::net",
            "std::process",
            "std::env",
            "std::thread",
            "Utc::now",
            "SystemTime",
            "Instant::now",
        ] {
            assert!(!file.text.contains(word), "{} uses {word}", file.path);
        }
    }
}

#[test]
fn the_engine_knows_no_wire_word() {
    // Words of the protocol. `ACP-22` in a doc comment is a requirement id, not a wire name.
    const WIRE: &[&str] = &[
        "session/update",
        "session/prompt",
        "request_permission",
        "agent_message_chunk",
        "stopReason",
        "end_turn",
        "max_turn_requests",
        "jsonrpc",
        "toolCallId",
    ];
    for file in tidy::rust_files() {
        if file.path.starts_with("crates/turnery-engine/src/") {
            for word in WIRE {
                assert!(!file.text.contains(word), "{} says {word}", file.path);
            }
        }
    }
}

#[test]
fn only_the_front_end_knows_the_wire_types() {
    for (name, _) in LAYERS {
        let knows = dependencies(name, "dependencies").contains("agent-client-protocol-schema");
        assert_eq!(knows, *name == "turnery-acp", "{name}");
    }
}
