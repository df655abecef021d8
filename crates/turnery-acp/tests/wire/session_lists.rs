//! Folders of sessions and session lists: access to additional roots, the `cwd` filter, and paging (DIR-2,
//! LIST-2, LIST-3).

use crate::harness::{TestClient, TestEnv, error_code_of, result_of};
use serde_json::{Value, json};
use turnery_tools::Toolbox;

fn client(world: &TestEnv) -> TestClient {
    TestClient::initialized(world.agent_with_tools(Toolbox::coding()))
}

/// A root of an earlier request is out of reach until it is given again.
// proves: DIR-2, G-24, THEME-20
#[test]
fn only_roots_of_this_request_are_readable() {
    let world = TestEnv::new(json!([
        {"when": {"last_tool_result_contains": "secret"}, "steps": [{"text": "seen"}]},
        {"when": {"last_tool_result_contains": "outside the folders"}, "steps": [{"text": "refused"}]},
        {"when": {"last_user_contains": "read"}, "steps": [
            {"tool_call": {"name": "read_file", "args": {"path": "../more/a.txt"}}},
        ]},
    ]));
    let more = world.root().join("more");
    std::fs::create_dir(&more).expect("a folder");
    std::fs::write(more.join("a.txt"), "secret\n").expect("a file");
    let at = |id: Option<&str>, roots: &[&std::path::Path]| {
        let mut at = json!({"cwd": world.cwd(), "mcpServers": [], "additionalDirectories": roots});
        if let Some(id) = id {
            at["sessionId"] = json!(id);
        }
        at
    };
    let ask = |client: &mut TestClient, id: &str| {
        client.take_buffered();
        client.prompt(id, "read");
        client.take_text()
    };
    let mut first = client(&world);
    let id = first.new_session(at(None, &[&more]));
    assert_eq!(ask(&mut first, &id), "seen");
    first.close_and_join();
    for method in ["session/load", "session/resume"] {
        let mut client = client(&world);
        result_of(&client.request(method, at(Some(&id), &[])));
        assert_eq!(ask(&mut client, &id), "refused", "{method}");
        result_of(&client.request(method, at(Some(&id), &[&more])));
        assert_eq!(ask(&mut client, &id), "seen", "{method}");
        // A different working directory is a different project.
        let mut elsewhere = at(Some(&id), &[]);
        elsewhere["cwd"] = json!(more);
        assert_eq!(
            error_code_of(&client.request(method, elsewhere)),
            -32602,
            "{method}"
        );
        client.close_and_join();
    }
}

fn list_session_ids(client: &mut TestClient, params: Value) -> Vec<String> {
    let list = client.request("session/list", params);
    let sessions = result_of(&list)["sessions"]
        .as_array()
        .expect("a list")
        .clone();
    let ids = sessions.iter().filter_map(|it| it["sessionId"].as_str());
    ids.map(str::to_owned).collect()
}

/// All spellings of a folder match it; parents, children and siblings do not.
// proves: LIST-2
#[test]
fn cwd_filter_matches_every_spelling_of_a_folder() {
    let world = TestEnv::without_answers();
    let cwd = world.cwd();
    let link = world.root().join("link");
    std::os::unix::fs::symlink(&cwd, &link).expect("a link");
    let below = cwd.join("below");
    let beside = world.root().join("work2");
    for folder in [&below, &beside] {
        std::fs::create_dir(folder).expect("a folder");
    }
    let mut client = world.client(json!({}));
    let mut make = |cwd: String| client.new_session(json!({"cwd": cwd, "mcpServers": []}));
    let shown = |path: &std::path::Path| path.display().to_string();
    let mut here = vec![
        make(shown(&cwd)),
        make(format!("{}/", shown(&cwd))),
        make(format!("{}/./", shown(&link))),
    ];
    for folder in [&below, &beside] {
        make(shown(folder));
    }
    make(shown(world.root()));
    here.sort();
    for name in [
        shown(&cwd),
        format!("{}//", shown(&cwd)),
        shown(&link),
        format!("{}/below/..", shown(&cwd)),
    ] {
        let mut found = list_session_ids(&mut client, json!({"cwd": name}));
        found.sort();
        assert_eq!(found, here, "{name}");
    }
    let list = client.request("session/list", json!({"cwd": link}));
    for session in result_of(&list)["sessions"].as_array().expect("a list") {
        let told = session["cwd"].as_str().expect("a path");
        assert!(!told.ends_with('/'), "{told}");
        let at = json!({"sessionId": session["sessionId"], "cwd": told, "mcpServers": []});
        result_of(&client.request("session/resume", at));
    }
    let nowhere = list_session_ids(&mut client, json!({"cwd": "/nowhere/at/all/"}));
    assert_eq!(nowhere, [] as [String; 0]);
}

/// A list longer than one page contains each session once, and the last page has no cursor.
// proves: LIST-3
#[test]
fn long_list_is_paged() {
    let world = TestEnv::without_answers();
    let mut client = world.client(json!({}));
    let mut made = Vec::new();
    for _ in 0..130 {
        let answer = client.request("session/new", world.new_session_params());
        made.push(
            result_of(&answer)["sessionId"]
                .as_str()
                .expect("an id")
                .to_owned(),
        );
    }
    let mut found = Vec::new();
    let mut pages = 0;
    let mut params = json!({});
    loop {
        let list = client.request("session/list", params);
        let list = result_of(&list);
        let sessions = list["sessions"].as_array().expect("a list");
        found.extend(
            sessions
                .iter()
                .filter_map(|it| it["sessionId"].as_str().map(str::to_owned)),
        );
        pages += 1;
        match list["nextCursor"].as_str() {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!(pages, 2);
    found.sort();
    made.sort();
    assert_eq!(found, made);
}
