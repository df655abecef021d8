//! Which tool is called with what, for offers as real agents make them.

use super::*;

fn offer(name: &str, schema: Value) -> Offered {
    Offered {
        name: name.to_owned(),
        namespace: None,
        schema: Some(schema),
    }
}

fn object(required: &[&str], optional: &[&str]) -> Value {
    let all = required.iter().chain(optional);
    let properties: Map<String, Value> = all
        .map(|name| ((*name).to_owned(), json!({"type": "string"})))
        .collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn candidates(text: &str) -> Candidates {
    toml::from_str(text).unwrap()
}

fn call(tool: &str, arguments: Value, offered: &[Offered], rules: &Candidates) -> (String, Value) {
    let called = resolve(&tool.into(), &arguments, offered, rules).unwrap();
    let arguments = match called.arguments {
        Arguments::Fields(fields) => fields,
        Arguments::Free(text) => Value::String(text),
    };
    (called.name, arguments)
}

#[test]
fn the_first_candidate_on_offer_is_taken_and_what_it_requires_is_added() {
    let rules = candidates(
        r#"
        read = [{ tool = "Read", args = { file = "{path}" } }, { tool = "look", args = { at = ["{path}"], n = 3 } }]
        shell = [{ tool = "run", args = { line = "cd / && {command} # {}{ x}" } }]
        "#,
    );
    let look = offer("look", object(&["at", "why"], &[]));
    let run = offer("run", object(&["line"], &[]));
    let offered = [run, look];
    assert_eq!(
        call("read", json!({"path": "/a b"}), &offered, &rules),
        (
            "look".to_owned(),
            json!({"at": ["/a b"], "n": 3, "why": "conformance"})
        )
    );
    assert_eq!(
        call("shell", json!({"command": "ls {}"}), &offered, &rules),
        ("run".to_owned(), json!({"line": "cd / && ls {} # {}{ x}"}))
    );
}

#[test]
fn a_profile_may_know_more_tools_and_leaves_out_what_is_not_said() {
    let rules = candidates(
        r#"
        plan = [{ tool = "todo", args = { items = [{ text = "{done}", at = "end" }, { text = "{doing}", at = "now" }] } }]
        ask = [{ tool = "question", args = { q = "{question}", of = ["{choices.0}", "{choices.1}", "{choices.2}"] } }]
        "#,
    );
    let offered = [offer("todo", json!({})), offer("question", json!({}))];
    assert_eq!(
        call("plan", json!({"doing": "a"}), &offered, &rules),
        (
            "todo".to_owned(),
            json!({"items": [{"text": "a", "at": "now"}]})
        )
    );
    let asked = json!({"question": "Which?", "choices": ["red", "green"]});
    assert_eq!(
        call("ask", asked.clone(), &offered, &rules),
        (
            "question".to_owned(),
            json!({"q": "Which?", "of": ["red", "green"]})
        )
    );
    // What the candidate itself must know is not made up.
    let ask = Tool::Other("ask".to_owned());
    assert_eq!(resolve(&ask, &json!({}), &offered, &rules), None);
}

#[test]
fn a_free_text_tool_gets_its_patch() {
    let rules = candidates(
        r#"write = [{ tool = "apply_patch", input = "*** Add File: {path}\n{text:patch}*** End\n" }]"#,
    );
    let mut patch = offer("apply_patch", Value::Null);
    patch.schema = None;
    assert_eq!(
        call(
            "write",
            json!({"path": "a", "text": "x\ny\n"}),
            &[patch],
            &rules
        ),
        (
            "apply_patch".to_owned(),
            json!("*** Add File: a\n+x\n+y\n*** End\n")
        )
    );
}

#[test]
fn without_candidates_names_and_properties_are_searched() {
    let none = Candidates::new();
    let offered = [
        offer("grep", object(&["pattern"], &["path"])),
        offer("read_file", object(&["absolute_path"], &["limit"])),
        offer("WriteFile", object(&["filePath", "content", "why"], &[])),
        offer("Bash", object(&["command", "description"], &[])),
    ];
    assert_eq!(
        call("read", json!({"path": "/a"}), &offered, &none),
        ("read_file".to_owned(), json!({"absolute_path": "/a"}))
    );
    assert_eq!(
        call("write", json!({"path": "/a", "text": "t"}), &offered, &none),
        (
            "WriteFile".to_owned(),
            json!({"filePath": "/a", "content": "t", "why": "conformance"})
        )
    );
    assert_eq!(
        call("shell", json!({"command": "ls"}), &offered, &none),
        (
            "Bash".to_owned(),
            json!({"command": "ls", "description": "conformance"})
        )
    );
}

#[test]
fn a_name_that_only_holds_a_known_one_is_searched_last() {
    let none = Candidates::new();
    let offered = [
        offer("view_image", object(&["path"], &[])),
        offer("fs.read_text_file", object(&["path"], &["line"])),
    ];
    assert_eq!(
        call("read", json!({"path": "/a"}), &offered, &none).0,
        "fs.read_text_file"
    );
    assert_eq!(
        resolve(&Tool::Read, &json!({"path": "/a"}), &offered[..1], &none),
        None
    );
}

#[test]
fn an_edit_is_searched_by_what_it_replaces() {
    let none = Candidates::new();
    let change = json!({"path": "/a", "old": "x", "new": "y"});
    let edit = offer(
        "Edit",
        object(&["file_path", "old_string", "new_string"], &["all"]),
    );
    assert_eq!(
        call("edit", change.clone(), &[edit], &none),
        (
            "Edit".to_owned(),
            json!({"file_path": "/a", "old_string": "x", "new_string": "y"})
        )
    );
    let rules = candidates(
        r#"edit = [{ tool = "patch", input = "*** Update File: {path}\n@@\n{old:cut}{new:patch}" }]"#,
    );
    let mut patch = offer("patch", Value::Null);
    patch.schema = None;
    assert_eq!(
        call("edit", change, &[patch], &rules),
        (
            "patch".to_owned(),
            json!("*** Update File: /a\n@@\n-x\n+y\n")
        )
    );
}

#[test]
fn a_file_that_is_there_is_edited_where_the_other_tool_only_creates() {
    let none = Candidates::new();
    let new = json!({"path": "/a", "text": "t"});
    let over = json!({"path": "/a", "text": "t", "old": "o"});
    let create = offer("create", object(&["path", "file_text"], &[]));
    let edit = offer("edit", object(&["path", "old_str", "new_str"], &[]));
    let created = |name: &str| (name.to_owned(), json!({"path": "/a", "file_text": "t"}));
    let both = [create.clone(), edit];
    assert_eq!(call("write", new.clone(), &both, &none), created("create"));
    assert_eq!(
        call("write", over.clone(), &both, &none),
        (
            "edit".to_owned(),
            json!({"path": "/a", "old_str": "o", "new_str": "t"})
        )
    );
    let alone = call("write", over.clone(), &both[..1], &none);
    assert_eq!(alone, created("create"));
    let writes = [
        offer("write", object(&["path", "file_text"], &[])),
        both[1].clone(),
    ];
    assert_eq!(
        call("write", over.clone(), &writes, &none),
        created("write")
    );

    // A profile says it by a candidate that names what is there: it is passed over where nothing is.
    let rules = candidates(
        r#"write = [{ tool = "edit", args = { path = "{path}", old_str = "{old}", new_str = "all of {text}" } }, { tool = "create", args = { path = "{path}", file_text = "{text}" } }]"#,
    );
    assert_eq!(call("write", new, &both, &rules), created("create"));
    assert_eq!(
        call("write", over, &both, &rules),
        (
            "edit".to_owned(),
            json!({"path": "/a", "old_str": "o", "new_str": "all of t"})
        )
    );
}

#[test]
fn arrays_are_filled_in_their_shape() {
    let none = Candidates::new();
    let items = json!({"type": "object", "properties": {"file_path": {"type": "string"}, "n": {"type": "integer"}}, "required": ["file_path", "n"]});
    let files = json!({"type": "object", "properties": {"files": {"type": "array", "items": items}}, "required": ["files"]});
    let shell = json!({"type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}}}, "required": ["command"]});
    let offered = [offer("read_files", files), offer("shell", shell)];
    assert_eq!(
        call("read", json!({"path": "/a"}), &offered, &none),
        (
            "read_files".to_owned(),
            json!({"files": [{"file_path": "/a", "n": 1}]})
        )
    );
    assert_eq!(
        call("shell", json!({"command": "ls -l"}), &offered, &none),
        (
            "shell".to_owned(),
            json!({"command": ["bash", "-c", "ls -l"]})
        )
    );
}

#[test]
fn a_shell_stands_in_for_a_missing_tool() {
    let none = Candidates::new();
    let offered = [offer("exec_command", object(&["cmd"], &[]))];
    assert_eq!(
        call("read", json!({"path": "/it's"}), &offered, &none),
        ("exec_command".to_owned(), json!({"cmd": r"cat '/it'\''s'"}))
    );
    assert_eq!(
        call(
            "write",
            json!({"path": "/a", "text": "x\n"}),
            &offered,
            &none
        ),
        (
            "exec_command".to_owned(),
            json!({"cmd": "printf %s 'x\n' > '/a'"})
        )
    );
    assert_eq!(
        resolve(&Tool::Shell, &json!({"command": "ls"}), &[], &none),
        None
    );
}

#[test]
fn an_mcp_tool_is_found_behind_its_servers_name() {
    let none = Candidates::new();
    let mut within = offer("echo", object(&["text"], &[]));
    within.namespace = Some("mcp__kit".to_owned());
    for name in ["mcp__kit__echo", "kit_echo", "kit-echo", "kit/echo"] {
        let offered = [
            offer("nonecho", json!({})),
            offer(name, object(&["text"], &[])),
        ];
        let (called, arguments) = call("mcp:echo", json!({"text": "a"}), &offered, &none);
        assert_eq!((called.as_str(), arguments), (name, json!({"text": "a"})));
    }
    let called = resolve(&Tool::Mcp("echo".to_owned()), &json!({}), &[within], &none);
    assert_eq!(called.unwrap().namespace.as_deref(), Some("mcp__kit"));
    assert_eq!(
        resolve(&Tool::Mcp("echo".to_owned()), &json!({}), &[], &none),
        None
    );
}

#[test]
fn a_named_tool_is_called_whether_offered_or_not() {
    let none = Candidates::new();
    assert_eq!(
        call("tool:teleport", json!({"to": 1}), &[], &none),
        ("teleport".to_owned(), json!({"to": 1}))
    );
}
