//! The example files for editors: each parses and contains the command `turnery acp`, which exists and speaks
//! the protocol.

use crate::{editor::Editor, home::Home};
use serde_json::Value;
use std::{fs, path::PathBuf};

/// Parses a file in its language; returns all strings in order.
type ExampleParser = fn(&str) -> Result<Vec<String>, String>;

/// All example files; each new file must be added here.
const FILES: [(&str, ExampleParser); 10] = [
    ("acpx.json", json_strings),
    ("acpx.sh", shell_strings),
    ("agent-shell.el", lisp_strings),
    ("agentic.lua", lua_strings),
    ("avante.lua", lua_strings),
    ("codecompanion.lua", lua_strings),
    ("jetbrains.json", json_strings),
    ("toad.sh", shell_strings),
    ("vscode.jsonc", jsonc_strings),
    ("zed.jsonc", jsonc_strings),
];

fn examples_folder() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/editors"
    ))
}

fn read_example(name: &str) -> String {
    fs::read_to_string(examples_folder().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn json_strings(text: &str) -> Result<Vec<String>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut strings = Vec::new();
    collect_strings(&value, &mut strings);
    Ok(strings)
}

fn collect_strings(value: &Value, strings: &mut Vec<String>) {
    match value {
        Value::String(text) => strings.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect_strings(item, strings)),
        Value::Object(members) => {
            // Put the command before its arguments, whatever the order of keys.
            let first = ["command", "args"];
            let known = first.iter().filter_map(|name| members.get(*name));
            known.for_each(|value| collect_strings(value, strings));
            let others = members
                .iter()
                .filter(|(name, _)| !first.contains(&name.as_str()));
            others.for_each(|(_, value)| collect_strings(value, strings));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the strings of JSON with comments on separate lines.
fn jsonc_strings(text: &str) -> Result<Vec<String>, String> {
    let lines = text.lines().filter(|line| !line.trim().starts_with("//"));
    json_strings(&lines.collect::<Vec<_>>().join("\n"))
}

/// Returns the double-quoted strings of a shell script, or an error if `sh` cannot parse it.
fn shell_strings(text: &str) -> Result<Vec<String>, String> {
    let mut checked = std::process::Command::new("sh");
    let status = checked.args(["-n", "-c", text]).status();
    if !status.map_err(|error| error.to_string())?.success() {
        return Err("the shell cannot read it".to_owned());
    }
    let code = text.lines().filter(|line| !line.starts_with('#'));
    let code = code.collect::<Vec<_>>().join("\n");
    Ok(code
        .split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect())
}

/// A token of Lua or of Emacs Lisp.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    StringLiteral(String),
    Punctuation(char),
}

/// Splits a text into tokens; comments start with `comment` and end with the line.
fn tokenize(text: &str, comment: &str, is_word: fn(char) -> bool) -> Result<Vec<Token>, String> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        if first.is_whitespace() {
            rest = after;
        } else if rest.starts_with(comment) {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if first == '"' {
            let end = after.find('"').ok_or("a string does not end")?;
            let inside = &after[..end];
            if inside.contains(['\\', '\n']) {
                return Err(format!("{inside:?} is more than this reader knows"));
            }
            all.push(Token::StringLiteral(inside.to_owned()));
            rest = &after[end + 1..];
        } else if is_word(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            all.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        } else {
            all.push(Token::Punctuation(first));
            rest = after;
        }
    }
    Ok(all)
}

/// Parses Emacs Lisp: lists, symbols, strings and quotes.
fn lisp_strings(text: &str) -> Result<Vec<String>, String> {
    let is_word = |c: char| c.is_alphanumeric() || "-:+*/<>=!?&".contains(c);
    let mut depth = 0_usize;
    let mut strings = Vec::new();
    for token in tokenize(text, ";", is_word)? {
        match token {
            Token::Punctuation('(') => depth += 1,
            Token::Punctuation(')') => depth = depth.checked_sub(1).ok_or("a ) too many")?,
            Token::Punctuation('\'') => {}
            Token::Punctuation(other) => return Err(format!("{other:?} means nothing here")),
            Token::StringLiteral(text) => strings.push(text),
            Token::Word(word) if depth == 0 => return Err(format!("{word} stands alone")),
            Token::Word(_) => {}
        }
    }
    match depth {
        0 => Ok(strings),
        open => Err(format!("{open} lists do not end")),
    }
}

/// Parses the subset of Lua that a configuration needs: calls with tables and functions.
fn lua_strings(text: &str) -> Result<Vec<String>, String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut lua = LuaParser {
        tokens: tokenize(text, "--", is_word)?,
        position: 0,
        strings: Vec::new(),
        names: Vec::new(),
    };
    while lua.position < lua.tokens.len() {
        lua.parse_call()?;
    }
    Ok(lua.strings)
}

struct LuaParser {
    tokens: Vec<Token>,
    position: usize,
    strings: Vec<String>,
    /// Parameters and local variables.
    names: Vec<String>,
}

impl LuaParser {
    fn next_token(&mut self) -> Result<Token, String> {
        let token = self.tokens.get(self.position).cloned();
        self.position += 1;
        token.ok_or_else(|| "it ends too soon".to_owned())
    }

    fn is_at(&self, sign: char) -> bool {
        self.tokens.get(self.position) == Some(&Token::Punctuation(sign))
    }

    fn take_sign(&mut self, sign: char) -> bool {
        let sees = self.is_at(sign);
        self.position += usize::from(sees);
        sees
    }

    fn expect_sign(&mut self, sign: char) -> Result<(), String> {
        match self.next_token()? {
            Token::Punctuation(found) if found == sign => Ok(()),
            found => Err(format!("{found:?} instead of {sign:?}")),
        }
    }

    /// Parses `name(...).name(...)`, with at least one call.
    fn parse_call(&mut self) -> Result<(), String> {
        self.parse_name()?;
        self.parse_call_chain()
    }

    /// Parses the rest of a call after its first name.
    fn parse_call_chain(&mut self) -> Result<(), String> {
        let mut called = false;
        loop {
            if self.take_sign('.') {
                self.parse_name()?;
            } else if self.take_sign('(') {
                self.parse_list(')')?;
                called = true;
            } else if called {
                return Ok(());
            } else {
                return Err("a name that nothing is done with".to_owned());
            }
        }
    }

    fn parse_name(&mut self) -> Result<String, String> {
        match self.next_token()? {
            Token::Word(word) if !word.starts_with(|c: char| c.is_ascii_digit()) => Ok(word),
            other => Err(format!("{other:?} is no name")),
        }
    }

    /// Parses a function after the keyword: parameters, local variables, and an optional `return`.
    fn parse_function(&mut self) -> Result<(), String> {
        self.expect_sign('(')?;
        while !self.take_sign(')') {
            let name = self.parse_name()?;
            self.names.push(name);
            if !self.take_sign(',') && !self.is_at(')') {
                return Err("a comma is missing between parameters".to_owned());
            }
        }
        loop {
            match self.parse_name()?.as_str() {
                "end" => return Ok(()),
                "return" => self.parse_value()?,
                "local" => {
                    let name = self.parse_name()?;
                    self.names.push(name);
                    self.expect_sign('=')?;
                    self.parse_value()?;
                }
                other => return Err(format!("{other} is more than this reader knows")),
            }
        }
    }

    /// Parses values, named or not, up to the sign `end`.
    fn parse_list(&mut self, end: char) -> Result<(), String> {
        while !self.take_sign(end) {
            if matches!(
                self.tokens.get(self.position + 1),
                Some(Token::Punctuation('='))
            ) && end == '}'
            {
                self.parse_name()?;
                self.expect_sign('=')?;
            }
            self.parse_value()?;
            if !self.take_sign(',') && !self.is_at(end) {
                return Err(format!(
                    "a comma is missing ahead of {:?}",
                    self.next_token()?
                ));
            }
        }
        Ok(())
    }

    fn parse_value(&mut self) -> Result<(), String> {
        match self.next_token()? {
            Token::StringLiteral(text) => self.strings.push(text),
            Token::Punctuation('{') => self.parse_list('}')?,
            Token::Word(word) if word == "function" => self.parse_function()?,
            Token::Word(_) if self.is_at('.') || self.is_at('(') => self.parse_call_chain()?,
            Token::Word(word) if self.names.contains(&word) => {}
            Token::Word(word) => {
                let number = word.bytes().all(|byte| byte.is_ascii_digit());
                if !number && !["true", "false", "nil"].contains(&&*word) {
                    return Err(format!("{word} is no value"));
                }
            }
            Token::Punctuation(sign) => return Err(format!("{sign:?} is no value")),
        }
        Ok(())
    }
}

/// Returns true if `turnery acp` occurs in the strings, as one string or as two in a row.
fn starts_turnery_acp(strings: &[String]) -> Option<Vec<String>> {
    let words: Vec<&str> = strings.iter().flat_map(|text| text.split(' ')).collect();
    let pairs = words
        .windows(2)
        .find(|two| two[0] == "turnery" && two[1] == "acp");
    pairs.map(|two| vec![two[1].to_owned()])
}

#[tokio::test]
async fn every_example_starts_turnery_acp() {
    let home = Home::new();
    let help = home.run(&["--help"]).await.stdout;
    for (name, read) in FILES {
        let strings = read(&read_example(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let arguments = starts_turnery_acp(&strings);
        let arguments = arguments.unwrap_or_else(|| panic!("{name} starts no agent: {strings:?}"));
        let command = format!("\n  {} ", arguments[0]);
        assert!(help.contains(&command), "{name}: {help}");
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut editor = Editor::spawn(&home, &arguments, &[]);
        let answer = editor.initialize().await;
        assert_eq!(answer["result"]["protocolVersion"], 1, "{name}");
        assert_eq!(editor.close_input().await.code, Some(0), "{name}");
    }
}

/// The README's snippet for Zed equals the example file.
#[test]
fn readme_shows_the_zed_example() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = fs::read_to_string(readme).expect("the README");
    let (_, shown) = readme.split_once("Zed, for example:").expect("Zed");
    let (_, shown) = shown.split_once("```json\n").expect("a snippet");
    let (shown, _) = shown.split_once("```").expect("its end");
    let lines = read_example("zed.jsonc");
    let lines = lines.lines().filter(|line| !line.starts_with("//"));
    let example = lines.map(|line| format!("{line}\n")).collect::<String>();
    assert_eq!(shown, example);
}

// proves: THEME-20
#[test]
fn windows_is_said_to_be_out_of_scope() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let readme = fs::read_to_string(format!("{folder}/README.md")).expect("the README");
    assert!(readme.contains("on Windows, use WSL"));
    let main = format!("{folder}/crates/turnery/src/main.rs");
    let main = fs::read_to_string(main).expect("the source");
    let refusal =
        "#[cfg(not(unix))]\ncompile_error!(\"turnery needs a Unix: on Windows, build it in WSL\");";
    assert!(main.contains(refusal));
}

/// Example files contain the keys that their clients read without checking, according to the sources of the
/// clients.
#[test]
fn examples_have_what_their_clients_need() {
    let table: [(&str, &[&str]); 10] = [
        // acpx reads the command line of an agent from its entry, or from `--agent`.
        (
            "acpx.json",
            &["\"agents\": {", "{ \"command\": \"turnery acp\" }"],
        ),
        ("acpx.sh", &["--agent \"turnery acp\" exec"]),
        // agent-shell-make-agent-config: a configuration starts its client with the function `:client-maker`.
        (
            "agent-shell.el",
            &[
                "(add-to-list 'agent-shell-agent-configs",
                ":identifier 'turnery",
                ":buffer-name ",
                ":client-maker (lambda (buffer)",
                "(acp-make-client :command \"turnery\"",
                ":command-params '(\"acp\")",
                ":context-buffer buffer",
            ],
        ),
        // Both choose a provider by its name. The agent gets `PATH` and `env`; without a home there is no configuration.
        (
            "agentic.lua",
            &[
                "provider = \"turnery\",",
                "acp_providers = {",
                "command = \"turnery\",",
                "args = { \"acp\" },",
                "HOME = os.getenv(\"HOME\"),",
            ],
        ),
        (
            "avante.lua",
            &[
                "provider = \"turnery\",",
                "acp_providers = {",
                "command = \"turnery\",",
                "args = { \"acp\" },",
                "HOME = os.getenv(\"HOME\"),",
            ],
        ),
        // lua/codecompanion/acp: a prompt without `form_messages` and a session without `mcpServers` fail.
        (
            "codecompanion.lua",
            &[
                "form_messages = function(self, messages, capabilities)",
                "defaults = { mcpServers = {},",
                "type = \"acp\",",
                "commands = { default = { \"turnery\", \"acp\" } },",
            ],
        ),
        (
            "jetbrains.json",
            &[
                "\"agent_servers\": {",
                "\"command\": \"turnery\",",
                "\"args\": [\"acp\"],",
            ],
        ),
        // The agent is one argument, and the folder the next.
        ("toad.sh", &["toad acp \"turnery acp\" \"${1:-.}\""]),
        (
            "vscode.jsonc",
            &[
                "\"acp.agents\": {",
                "\"command\": \"turnery\",",
                "\"args\": [\"acp\"],",
            ],
        ),
        // agent_servers in Zed's settings: the entry's type is its tag.
        (
            "zed.jsonc",
            &[
                "\"agent_servers\": {",
                "\"type\": \"custom\",",
                "\"command\": \"turnery\",",
                "\"args\": [\"acp\"],",
            ],
        ),
    ];
    assert_eq!(table.map(|(name, _)| name), FILES.map(|(name, _)| name));
    for (name, needed) in table {
        let example = read_example(name);
        for needed in needed {
            assert!(example.contains(needed), "{name} lacks {needed}");
        }
    }
}

#[test]
fn every_example_is_tested_linked_and_names_turnery_acp() {
    let entries = fs::read_dir(examples_folder()).expect("a folder");
    let names = entries.map(|entry| entry.expect("a file").file_name().display().to_string());
    let mut names: Vec<String> = names.filter(|name| name != "README.md").collect();
    names.sort();
    assert_eq!(names, FILES.map(|(name, _)| name));
    let readme = read_example("README.md");
    for name in names {
        assert!(readme.contains(&format!("[{name}]({name})")), "{name}");
        // Plain JSON has no comments; the table says it for those.
        assert!(
            name.ends_with(".json") || read_example(&name).contains("turnery acp"),
            "{name}"
        );
    }
}

/// The parsers detect mistakes: a missing bracket, quote or comma.
#[test]
fn broken_example_is_a_parse_error() {
    for (name, read) in FILES {
        let whole = read_example(name);
        let signs: &[char] = match name.rsplit_once('.') {
            Some((_, "el")) => &[')', '"'],
            Some((_, "lua")) => &[')', '}', '"', ','],
            Some((_, "sh")) => &['"'],
            _ => &['}', ']', '"', ':'],
        };
        for sign in signs {
            let Some(place) = whole.rfind(*sign) else {
                continue;
            };
            // A comma behind the last value of a table may be left out.
            let place = match sign {
                ',' => {
                    let between = whole.find(", ").or_else(|| whole.find(",\n"));
                    between.expect("one between two values")
                }
                _ => place,
            };
            let broken = format!("{}{}", &whole[..place], &whole[place + 1..]);
            assert!(read(&broken).is_err(), "{name} without {sign}");
        }
    }
    assert!(lua_strings("f({ a = 1 b = 2 })").is_err());
    assert!(lua_strings("f({ a = })").is_err());
    assert!(lisp_strings("(a))").is_err());
}
