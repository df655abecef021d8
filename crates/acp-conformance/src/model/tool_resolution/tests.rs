//! Tests tool resolution with the tool lists of real agents.

use super::*;

fn offered_tool(name: &str, schema: Value) -> OfferedTool {
    OfferedTool {
        name: name.to_owned(),
        namespace: None,
        schema: Some(schema),
    }
}

fn object_schema(required: &[&str], optional: &[&str]) -> Value {
    let all = required.iter().chain(optional);
    let properties: Map<String, Value> = all
        .map(|name| ((*name).to_owned(), json!({"type": "string"})))
        .collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn parse_candidates(text: &str) -> ToolCandidates {
    toml::from_str(text).unwrap()
}

fn resolved_call(
    tool: &str,
    arguments: Value,
    offered_tools: &[OfferedTool],
    rules: &ToolCandidates,
) -> (String, Value) {
    let called = resolve_tool_call(&tool.into(), &arguments, offered_tools, rules).unwrap();
    let arguments = match called.arguments {
        ToolArguments::Object(fields) => fields,
        ToolArguments::Text(text) => Value::String(text),
    };
    (called.name, arguments)
}

#[test]
fn first_offered_candidate_gets_required_arguments() {
    let rules = parse_candidates(
        r#"
        read = [{ tool = "Read", args = { file = "{path}" } }, { tool = "look", args = { at = ["{path}"], n = 3 } }]
        shell = [{ tool = "run", args = { line = "cd / && {command} # {}{ x}" } }]
        "#,
    );
    let look = offered_tool("look", object_schema(&["at", "why"], &[]));
    let run = offered_tool("run", object_schema(&["line"], &[]));
    let offered = [run, look];
    assert_eq!(
        resolved_call("read", json!({"path": "/a b"}), &offered, &rules),
        (
            "look".to_owned(),
            json!({"at": ["/a b"], "n": 3, "why": "conformance"})
        )
    );
    assert_eq!(
        resolved_call("shell", json!({"command": "ls {}"}), &offered, &rules),
        ("run".to_owned(), json!({"line": "cd / && ls {} # {}{ x}"}))
    );
}

#[test]
fn profile_tool_omits_unset_arguments() {
    let rules = parse_candidates(
        r#"
        plan = [{ tool = "todo", args = { items = [{ text = "{done}", at = "end" }, { text = "{doing}", at = "now" }] } }]
        ask = [{ tool = "question", args = { q = "{question}", of = ["{choices.0}", "{choices.1}", "{choices.2}"] } }]
        "#,
    );
    let offered = [
        offered_tool("todo", json!({})),
        offered_tool("question", json!({})),
    ];
    assert_eq!(
        resolved_call("plan", json!({"doing": "a"}), &offered, &rules),
        (
            "todo".to_owned(),
            json!({"items": [{"text": "a", "at": "now"}]})
        )
    );
    let asked = json!({"question": "Which?", "choices": ["red", "green"]});
    assert_eq!(
        resolved_call("ask", asked.clone(), &offered, &rules),
        (
            "question".to_owned(),
            json!({"q": "Which?", "of": ["red", "green"]})
        )
    );
    // A value that the candidate's own template needs is not made up.
    let ask = ScriptTool::Other("ask".to_owned());
    assert_eq!(resolve_tool_call(&ask, &json!({}), &offered, &rules), None);
}

#[test]
fn free_text_tool_gets_its_patch() {
    let rules = parse_candidates(
        r#"write = [{ tool = "apply_patch", input = "*** Add File: {path}\n{text:patch}*** End\n" }]"#,
    );
    let mut patch = offered_tool("apply_patch", Value::Null);
    patch.schema = None;
    assert_eq!(
        resolved_call(
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
fn tool_is_found_by_name_and_properties() {
    let none = ToolCandidates::new();
    let offered = [
        offered_tool("grep", object_schema(&["pattern"], &["path"])),
        offered_tool("read_file", object_schema(&["absolute_path"], &["limit"])),
        offered_tool(
            "WriteFile",
            object_schema(&["filePath", "content", "why"], &[]),
        ),
        offered_tool("Bash", object_schema(&["command", "description"], &[])),
    ];
    assert_eq!(
        resolved_call("read", json!({"path": "/a"}), &offered, &none),
        ("read_file".to_owned(), json!({"absolute_path": "/a"}))
    );
    assert_eq!(
        resolved_call("write", json!({"path": "/a", "text": "t"}), &offered, &none),
        (
            "WriteFile".to_owned(),
            json!({"filePath": "/a", "content": "t", "why": "conformance"})
        )
    );
    assert_eq!(
        resolved_call("shell", json!({"command": "ls"}), &offered, &none),
        (
            "Bash".to_owned(),
            json!({"command": "ls", "description": "conformance"})
        )
    );
}

#[test]
fn partial_name_match_is_tried_last() {
    let none = ToolCandidates::new();
    let offered = [
        offered_tool("view_image", object_schema(&["path"], &[])),
        offered_tool("fs.read_text_file", object_schema(&["path"], &["line"])),
    ];
    assert_eq!(
        resolved_call("read", json!({"path": "/a"}), &offered, &none).0,
        "fs.read_text_file"
    );
    assert_eq!(
        resolve_tool_call(
            &ScriptTool::Read,
            &json!({"path": "/a"}),
            &offered[..1],
            &none
        ),
        None
    );
}

#[test]
fn edit_tool_is_found_by_its_parameters() {
    let none = ToolCandidates::new();
    let change = json!({"path": "/a", "old": "x", "new": "y"});
    let edit = offered_tool(
        "Edit",
        object_schema(&["file_path", "old_string", "new_string"], &["all"]),
    );
    assert_eq!(
        resolved_call("edit", change.clone(), &[edit], &none),
        (
            "Edit".to_owned(),
            json!({"file_path": "/a", "old_string": "x", "new_string": "y"})
        )
    );
    let rules = parse_candidates(
        r#"edit = [{ tool = "patch", input = "*** Update File: {path}\n@@\n{old:cut}{new:patch}" }]"#,
    );
    let mut patch = offered_tool("patch", Value::Null);
    patch.schema = None;
    assert_eq!(
        resolved_call("edit", change, &[patch], &rules),
        (
            "patch".to_owned(),
            json!("*** Update File: /a\n@@\n-x\n+y\n")
        )
    );
}

#[test]
fn existing_file_is_edited_if_tool_only_creates() {
    let none = ToolCandidates::new();
    let new = json!({"path": "/a", "text": "t"});
    let over = json!({"path": "/a", "text": "t", "old": "o"});
    let create = offered_tool("create", object_schema(&["path", "file_text"], &[]));
    let edit = offered_tool("edit", object_schema(&["path", "old_str", "new_str"], &[]));
    let created = |name: &str| (name.to_owned(), json!({"path": "/a", "file_text": "t"}));
    let both = [create.clone(), edit];
    assert_eq!(
        resolved_call("write", new.clone(), &both, &none),
        created("create")
    );
    assert_eq!(
        resolved_call("write", over.clone(), &both, &none),
        (
            "edit".to_owned(),
            json!({"path": "/a", "old_str": "o", "new_str": "t"})
        )
    );
    let alone = resolved_call("write", over.clone(), &both[..1], &none);
    assert_eq!(alone, created("create"));
    let writes = [
        offered_tool("write", object_schema(&["path", "file_text"], &[])),
        both[1].clone(),
    ];
    assert_eq!(
        resolved_call("write", over.clone(), &writes, &none),
        created("write")
    );

    // A candidate that uses `{old}` is skipped if the call does not give it.
    let rules = parse_candidates(
        r#"write = [{ tool = "edit", args = { path = "{path}", old_str = "{old}", new_str = "all of {text}" } }, { tool = "create", args = { path = "{path}", file_text = "{text}" } }]"#,
    );
    assert_eq!(
        resolved_call("write", new, &both, &rules),
        created("create")
    );
    assert_eq!(
        resolved_call("write", over, &both, &rules),
        (
            "edit".to_owned(),
            json!({"path": "/a", "old_str": "o", "new_str": "all of t"})
        )
    );
}

#[test]
fn array_parameters_are_filled_by_schema() {
    let none = ToolCandidates::new();
    let items = json!({"type": "object", "properties": {"file_path": {"type": "string"}, "n": {"type": "integer"}}, "required": ["file_path", "n"]});
    let files = json!({"type": "object", "properties": {"files": {"type": "array", "items": items}}, "required": ["files"]});
    let shell = json!({"type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}}}, "required": ["command"]});
    let offered = [
        offered_tool("read_files", files),
        offered_tool("shell", shell),
    ];
    assert_eq!(
        resolved_call("read", json!({"path": "/a"}), &offered, &none),
        (
            "read_files".to_owned(),
            json!({"files": [{"file_path": "/a", "n": 1}]})
        )
    );
    assert_eq!(
        resolved_call("shell", json!({"command": "ls -l"}), &offered, &none),
        (
            "shell".to_owned(),
            json!({"command": ["bash", "-c", "ls -l"]})
        )
    );
}

#[test]
fn shell_replaces_missing_tool() {
    let none = ToolCandidates::new();
    let offered = [offered_tool("exec_command", object_schema(&["cmd"], &[]))];
    assert_eq!(
        resolved_call("read", json!({"path": "/it's"}), &offered, &none),
        ("exec_command".to_owned(), json!({"cmd": r"cat '/it'\''s'"}))
    );
    assert_eq!(
        resolved_call(
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
        resolve_tool_call(&ScriptTool::Shell, &json!({"command": "ls"}), &[], &none),
        None
    );
}

#[test]
fn mcp_tool_is_found_with_server_prefix() {
    let none = ToolCandidates::new();
    let mut within = offered_tool("echo", object_schema(&["text"], &[]));
    within.namespace = Some("mcp__kit".to_owned());
    for name in ["mcp__kit__echo", "kit_echo", "kit-echo", "kit/echo"] {
        let offered = [
            offered_tool("nonecho", json!({})),
            offered_tool(name, object_schema(&["text"], &[])),
        ];
        let (called, arguments) = resolved_call("mcp:echo", json!({"text": "a"}), &offered, &none);
        assert_eq!((called.as_str(), arguments), (name, json!({"text": "a"})));
    }
    let called = resolve_tool_call(
        &ScriptTool::Mcp("echo".to_owned()),
        &json!({}),
        &[within],
        &none,
    );
    assert_eq!(called.unwrap().namespace.as_deref(), Some("mcp__kit"));
    assert_eq!(
        resolve_tool_call(&ScriptTool::Mcp("echo".to_owned()), &json!({}), &[], &none),
        None
    );
}

#[test]
fn named_tool_is_called_even_if_not_offered() {
    let none = ToolCandidates::new();
    assert_eq!(
        resolved_call("tool:teleport", json!({"to": 1}), &[], &none),
        ("teleport".to_owned(), json!({"to": 1}))
    );
}
