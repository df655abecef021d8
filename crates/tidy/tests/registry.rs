//! Checks `registry/turnery/` against the rules of the agent registry.

use serde_json::{Map, Value, json};
use std::fs;

/// Platforms that an archive may target.
const TARGETS: [&str; 6] = [
    "darwin-aarch64",
    "darwin-x86_64",
    "linux-aarch64",
    "linux-x86_64",
    "windows-aarch64",
    "windows-x86_64",
];

/// Suffixes that the file at an `archive` address must have.
const ARCHIVES: [&str; 5] = [".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2"];

/// Colours that fit every theme.
const COLOURS: [&str; 3] = ["currentColor", "none", "inherit"];

fn registry_file(name: &str) -> String {
    let path = tidy::root().join("registry/turnery").join(name);
    fs::read_to_string(path).expect("a file of the registry")
}

/// Returns the first rule that an `agent.json` in `folder` breaks.
fn first_broken_rule(agent: &Value, folder: &str, version: &str) -> Option<String> {
    let Some(all) = agent.as_object() else {
        return Some("not an object".to_owned());
    };
    let text = |name: &str| {
        all.get(name)
            .and_then(Value::as_str)
            .filter(|it| !it.is_empty())
    };
    for name in ["id", "name", "version", "description"] {
        if text(name).is_none() {
            return Some(format!("{name} is missing"));
        }
    }
    let known = [
        "id",
        "name",
        "version",
        "description",
        "distribution",
        "repository",
        "website",
        "authors",
        "license",
        "license_url",
    ];
    if let Some(name) = all.keys().find(|name| !known.contains(&name.as_str())) {
        return Some(format!("{name} is unknown"));
    }
    let id = text("id").unwrap_or_default();
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if id != folder || !id.starts_with(|c: char| c.is_ascii_lowercase()) || !id.chars().all(fits) {
        return Some(format!("the id {id} is not the folder's name"));
    }
    let numbers: Vec<&str> = text("version").unwrap_or_default().split('.').collect();
    if numbers.len() != 3 || numbers.iter().any(|it| it.parse::<u32>().is_err()) {
        return Some("the version is not three numbers".to_owned());
    }
    if text("version") != Some(version) {
        return Some("the version is not that of the crates".to_owned());
    }
    let empty = Map::new();
    let ways = all.get("distribution").and_then(Value::as_object);
    let ways = ways.unwrap_or(&empty);
    if ways.is_empty()
        || ways
            .keys()
            .any(|way| !["binary", "npx", "uvx"].contains(&way.as_str()))
    {
        return Some("distribution names no known way, or an unknown one".to_owned());
    }
    let binaries = ways.get("binary").and_then(Value::as_object);
    binaries
        .into_iter()
        .flatten()
        .find_map(|(target, binary)| first_broken_binary_rule(target, binary, version))
}

fn first_broken_binary_rule(target: &str, binary: &Value, version: &str) -> Option<String> {
    let known = ["archive", "cmd", "sha256", "args", "env"];
    let archive = binary["archive"].as_str().unwrap_or_default();
    let name = archive.rsplit('/').next().unwrap_or_default();
    let is_strings = |list: &Value| {
        list.is_null()
            || list
                .as_array()
                .is_some_and(|all| all.iter().all(Value::is_string))
    };
    let Some(entries) = binary.as_object() else {
        return Some(format!("{target} is no object"));
    };
    match () {
        () if !TARGETS.contains(&target) => Some(format!("{target} is no target")),
        () if entries.keys().any(|key| !known.contains(&key.as_str())) => {
            Some(format!("{target} holds an unknown key"))
        }
        () if !archive.starts_with("https://") => Some(format!("{target}: no address")),
        () if archive.contains("latest") => Some(format!("{target}: the latest is no version")),
        () if !archive.contains(version) => Some(format!("{target}: another version")),
        () if !ARCHIVES.iter().any(|end| name.ends_with(end)) => {
            Some(format!("{target}: no archive"))
        }
        () if !binary["cmd"].is_string() => Some(format!("{target}: no command")),
        () if !is_strings(&binary["args"]) => Some(format!("{target}: args are strings")),
        () => None,
    }
}

/// Returns all values of an attribute.
fn values<'a>(svg: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!(" {name}=\"");
    svg.split(&begin as &str)
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect()
}

/// Returns true if an icon is a 16×16 square in the text colour.
fn is_icon(svg: &str) -> bool {
    let is_square = values(svg, "width") == ["16"]
        && values(svg, "height") == ["16"]
        && values(svg, "viewBox") == ["0 0 16 16"];
    let colours: Vec<&str> = ["fill", "stroke", "color", "stop-color"]
        .iter()
        .flat_map(|name| values(svg, name))
        .collect();
    let is_plain = !["<style", "style=", "<image", "<script", "href", "#", "rgb("]
        .iter()
        .any(|word| svg.contains(word));
    is_square
        && is_plain
        && colours.contains(&"currentColor")
        && colours.iter().all(|colour| COLOURS.contains(colour))
}

fn version() -> String {
    let manifest = fs::read_to_string(tidy::root().join("Cargo.toml")).expect("a manifest");
    let manifest: toml::Table = manifest.parse().expect("TOML");
    let version = manifest["workspace"]["package"]["version"].as_str();
    version.expect("a version").to_owned()
}

#[test]
fn registry_entry_is_valid() {
    let agent: Value = serde_json::from_str(&registry_file("agent.json")).expect("JSON");
    assert_eq!(first_broken_rule(&agent, "turnery", &version()), None);
    for (target, binary) in agent["distribution"]["binary"]
        .as_object()
        .expect("binaries")
    {
        assert_eq!(binary["args"], json!(["acp"]), "{target} serves an editor");
    }
    assert!(is_icon(&registry_file("icon.svg")));
}

#[test]
fn invalid_registry_entries_are_detected() {
    let agent: Value = serde_json::from_str(&registry_file("agent.json")).expect("JSON");
    let binary = "/distribution/binary/linux-x86_64";
    let table = [
        ("/id", json!("Turnery")),
        ("/id", json!("another")),
        ("/name", json!("")),
        ("/version", json!("0.1")),
        ("/version", json!("latest")),
        ("/version", json!("99.0.0")),
        ("/distribution", json!({})),
        ("/distribution", json!({"brew": {}})),
        ("/distribution/binary", json!({"linux-riscv": {}})),
        ("", json!([])),
        (binary, json!("t")),
        (
            binary,
            json!({"archive": "https://h/latest/t-0.1.0.tar.gz", "cmd": "./t"}),
        ),
        (
            binary,
            json!({"archive": "https://h/t-0.0.9.tar.gz", "cmd": "./t"}),
        ),
        (
            binary,
            json!({"archive": "https://h/t-0.1.0.dmg", "cmd": "./t"}),
        ),
        (binary, json!({"archive": "https://h/t-0.1.0.zip"})),
        (
            binary,
            json!({"archive": "https://h/t-0.1.0.zip", "cmd": "./t", "icon": 1}),
        ),
    ];
    for (at, value) in table {
        let mut broken = agent.clone();
        *broken.pointer_mut(at).expect("there") = value.clone();
        assert!(
            first_broken_rule(&broken, "turnery", "0.1.0").is_some(),
            "{at} {value}"
        );
    }
    let icon = registry_file("icon.svg");
    for (old, new) in [
        ("width=\"16\"", "width=\"24\""),
        ("0 0 16 16", "0 0 24 24"),
        ("\"currentColor\"", "\"#ff0000\""),
        ("\"currentColor\"", "\"red\""),
        ("\"none\"", "\"white\""),
        ("<path", "<path style=\"fill:red\""),
    ] {
        assert!(!is_icon(&icon.replacen(old, new, 1)), "{new}");
    }
}
