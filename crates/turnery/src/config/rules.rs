//! Parses permission rules and rejects names of tools that do not exist.

use super::suggestion::alternatives;
use turnery_tools::{Rule, mcp};

/// Names of tool groups. The shell is a group and a tool.
const GROUP_NAMES: &[&str] = &["shell", "edit", "read"];

/// Returns the names of tool groups and tools.
fn rule_names() -> Vec<&'static str> {
    let tools = [
        turnery_tools::TOOL_NAMES,
        turnery_agent::TOOL_NAMES,
        mcp::RESOURCE_TOOL_NAMES,
    ];
    let tools = tools.into_iter().flatten();
    let tools = tools.filter(|name| !GROUP_NAMES.contains(name));
    GROUP_NAMES.iter().chain(tools).copied().collect()
}

/// Lower-case tool names of other agents, with turnery's equivalent.
const OTHER_AGENTS_NAMES: &[(&str, &str)] = &[
    // Claude Code
    ("agent", "task"),
    ("askuserquestion", "ask_user"),
    ("bash", "shell"),
    ("bashoutput", "shell"),
    ("glob", "find_files"),
    ("grep", "search"),
    ("killshell", "shell"),
    ("ls", "list_dir"),
    ("multiedit", "edit"),
    ("notebookedit", "edit"),
    ("notebookread", "read"),
    ("todowrite", "update_plan"),
    ("write", "edit"),
    // Codex
    ("apply_patch", "edit"),
    ("exec_command", "shell"),
    ("local_shell", "shell"),
    ("request_user_input", "ask_user"),
    ("unified_exec", "shell"),
    ("view_image", "read"),
    // Gemini CLI
    ("grep_search", "search"),
    ("list_directory", "list_dir"),
    ("read_many_files", "read"),
    ("replace", "edit"),
    ("run_shell_command", "shell"),
    ("search_file_content", "search"),
    ("shelltool", "shell"),
    ("write_todos", "update_plan"),
    // OpenCode
    ("list", "list_dir"),
    ("patch", "edit"),
    ("question", "ask_user"),
    // Cline, Cursor, GitHub Copilot, Zed
    ("codebase_search", "search"),
    ("create_file", "edit"),
    ("delete_file", "edit"),
    ("execute_command", "shell"),
    ("file_search", "find_files"),
    ("list_files", "list_dir"),
    ("replace_in_file", "edit"),
    ("replace_string_in_file", "edit"),
    ("run_in_terminal", "shell"),
    ("run_terminal_cmd", "shell"),
    ("search_files", "search"),
    ("search_replace", "edit"),
    ("str_replace_based_edit_tool", "edit"),
    ("str_replace_editor", "edit"),
    ("terminal", "shell"),
    ("write_to_file", "edit"),
];

/// Lower-case names of other agents' tools that read from the web; turnery has no such tool.
const WEB_TOOLS: &[&str] = &[
    "fetch",
    "google_web_search",
    "web_fetch",
    "web_search",
    "webfetch",
    "websearch",
];

/// Parses a rule, or says why its tool is unknown. Tools of MCP servers are not checked: they are only known
/// once the servers run.
pub(crate) fn parse_rule(text: &str) -> Result<Rule, String> {
    // The tool name is checked first: another agent's pattern may not be valid here.
    let text = text.trim();
    let (tool, inside) = match text.split_once('(') {
        Some((tool, inside)) => (tool, Some(inside)),
        None => (text, None),
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    let is_served = tool
        .strip_prefix("mcp__")
        .is_some_and(|server| !server.is_empty());
    if !tool.is_empty() && tool.chars().all(is_name) && !rule_names().contains(&tool) && !is_served
    {
        return Err(format!(
            "invalid rule {text:?}: {}",
            describe_unknown_tool(tool, inside)
        ));
    }
    text.parse().map_err(|error| format!("{error}"))
}

/// Returns the error for an unknown tool, with the name that was probably meant.
fn describe_unknown_tool(tool: &str, inside: Option<&str>) -> String {
    let small = tool.to_lowercase();
    if WEB_TOOLS.contains(&small.as_str()) {
        return format!(
            "there is no tool {tool} here, nor another that reads from the web: leave the rule out"
        );
    }
    let names = rule_names();
    let elsewhere = OTHER_AGENTS_NAMES.iter().find(|(name, _)| *name == small);
    let ours = match elsewhere {
        Some((_, ours)) => Some(*ours),
        None => names.iter().copied().find(|name| *name == small),
    };
    let Some(ours) = ours else {
        return format!(
            "there is no tool {tool:?}; write {}, or mcp__SERVER for a server of tools",
            alternatives(tool, &names)
        );
    };
    let whole = inside.map(|inside| format!("{ours}({inside}"));
    let meant = whole.filter(|whole| whole.parse::<Rule>().is_ok());
    format!(
        "the tool is named {ours} here; write {}",
        meant.as_deref().unwrap_or(ours)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnery_tools::Shell;

    #[test]
    fn every_tool_name_parses_as_rule() {
        let tools = crate::toolbox::toolbox(Shell::default());
        for name in tools.names().chain(["shell", "edit", "read", "ask_user"]) {
            assert_eq!(parse_rule(name).unwrap().to_string(), name);
        }
        for text in [
            "mcp__github",
            "mcp__github__create_issue",
            "write_file(src/**)",
        ] {
            assert_eq!(parse_rule(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_agents_tool_names_suggest_ours() {
        for (text, expected) in [
            ("Edit(**)", "the tool is named edit here; write edit(**)"),
            ("Bash(**)", "the tool is named shell here; write shell"),
            (
                "Bash(rm:*)",
                "the tool is named shell here; write shell(rm:*)",
            ),
            ("Bash", "the tool is named shell here; write shell"),
            (
                "Write(src/**)",
                "the tool is named edit here; write edit(src/**)",
            ),
            ("MultiEdit", "the tool is named edit here; write edit"),
            ("NotebookEdit", "the tool is named edit here; write edit"),
            (
                "Read(**/.env)",
                "the tool is named read here; write read(**/.env)",
            ),
            (
                "Glob",
                "the tool is named find_files here; write find_files",
            ),
            ("Grep", "the tool is named search here; write search"),
            ("Task", "the tool is named task here; write task"),
            ("apply_patch", "the tool is named edit here; write edit"),
            (
                "run_shell_command(git push:*)",
                "the tool is named shell here; write shell(git push:*)",
            ),
            ("replace", "the tool is named edit here; write edit"),
            (
                "SHELL(rm:*)",
                "the tool is named shell here; write shell(rm:*)",
            ),
            (
                "WebFetch(domain:example.org)",
                "there is no tool WebFetch here, nor another that reads from the web: leave the rule out",
            ),
        ] {
            assert_eq!(
                parse_rule(text),
                Err(format!("invalid rule {text:?}: {expected}"))
            );
        }
    }

    #[test]
    fn misspelt_tool_suggests_nearest_name() {
        let error = |text: &str| parse_rule(text).unwrap_err();
        assert!(error("shel(rm:*)").contains("there is no tool \"shel\"; write \"shell\" (or "));
        assert!(error("edti(**)").contains("write \"edit\" (or "));
        assert!(error("mcp__").contains("there is no tool \"mcp__\""));
        assert!(error("frobnicate").contains("write shell, edit, read, "));
        // Errors in the pattern are still reported.
        assert!(error("shell(ls").contains("the bracket is not closed"));
        assert!(error("(x)").contains("the tool is missing"));
    }
}
