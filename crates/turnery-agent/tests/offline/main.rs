//! Tests of the offline model with the real tools: a list of questions with expected answers, and a
//! repository too large for any tool to show completely.

use std::{fmt::Write as _, fs, path::Path, process::Command, sync::Arc};
use tempfile::TempDir;
use turnery_agent::{Agent, ClientPorts, OpenRequest, PromptOptions, Settings};
use turnery_engine::{Content, Outcome, TurnFinish::AssistantMessage};
use turnery_models::ModelRegistry;
use turnery_store::MemoryStore;
use turnery_tools::{Mode, Toolbox};

const FILES: [(&str, &str); 11] = [
    (".gitignore", "/target\n"),
    ("target/junk.rs", "struct Ignored;\n"),
    (
        "Cargo.toml",
        "[package]\nname = \"clock\"\n\n[dependencies]\nserde = \"1\"\n",
    ),
    (
        "README.md",
        "# Clock\n\nTells the time.\n\n```sh\n# no heading\ncargo run\n```\n\n## The outcome of a loop\n\n- [ ] TODO: say more\n",
    ),
    (
        "src/main.rs",
        "use crate::engine::Loop;\nmod engine;\n\n// TODO: read the options\nfn main() {\n    let mut engine = Loop::new();\n    engine.step();\n    // FIXME(ann): leap seconds\n    println!(\"there is no TODO here\");\n}\n",
    ),
    (
        "src/engine.rs",
        "//! The engine.\n\n/// Runs the clock.\npub struct Loop {\n    old_name: u32,\n}\n\nimpl Loop {\n    pub fn new() -> Self {\n        Self { old_name: 0 }\n    }\n\n    /// One tick.\n    pub fn step(&mut self) {\n        self.old_name += 1;\n    }\n}\n\npub struct LoopSpec;\n\nconst MAX_TICKS: u32 = 10;\n",
    ),
    (
        "web/app.js",
        "import { tick } from \"./tick.js\";\n\nexport class Greeter {\n  constructor(name) { this.name = name; }\n  greet() {\n    if (this.name) { tick(); }\n  }\n}\n\nexport const shout = (text) => text.toUpperCase();\n",
    ),
    (
        "web/tick.js",
        "export function tick() {\n  // HACK: no timer\n}\n",
    ),
    (
        "tools/load.py",
        "LIMIT = 3\n\n\ndef load(path):\n    \"\"\"Load it.\"\"\"\n    return open(path).read()[:LIMIT]\n",
    ),
    (
        "c/list.c",
        "#include <stdio.h>\n#define SIZE 10\nstatic int counter = 0;\ntypedef struct node { struct node *next; } node_t;\nint add(int a, int b);\nint add(int a, int b) { return a + b; }\nint main(void)\n{\n    return add(1, 2);\n}\n",
    ),
    ("notes.txt", "nothing yet\n"),
];

/// Creates a repository with one commit, one change and one untracked file.
fn repository() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for (path, text) in FILES {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("written");
    }
    let git = |args: &str| {
        let mut command = Command::new("git");
        let args = args.split(' ');
        let status = command.args(args).current_dir(folder.path()).status();
        assert!(status.expect("git").success());
    };
    git("init -q -b main");
    git("add .gitignore Cargo.toml README.md src web tools c");
    git("-c user.name=a -c user.email=a@b commit -qm first");
    let changed = folder.path().join("tools/load.py");
    let text = fs::read_to_string(&changed).expect("read");
    fs::write(&changed, text + "# end\n").expect("written");
    folder
}

/// Returns the answer to a prompt.
async fn run_prompt(folder: &Path, prompt: &str) -> String {
    let mut settings = Settings::new("offline".parse().expect("a model"), "");
    settings.mode = Mode::Auto;
    let models = Arc::new(ModelRegistry::new(Vec::new()));
    let store = Arc::new(MemoryStore::new());
    let agent = Agent::new(store, models, Toolbox::coding(), Arc::new(settings));
    let opened = agent.create(OpenRequest::folder(folder.to_owned()), |_| {
        ClientPorts::silent()
    });
    let session = opened.await.expect("a session");
    let options = PromptOptions::default();
    let ticket = session.prompt(vec![Content::text(prompt)], options);
    let done = ticket.expect("accepted").result().await.expect("a result");
    match done.outcome {
        Outcome::Finished(AssistantMessage { text }, _) => text.to_string(),
        other => panic!("{prompt}: {other:?}"),
    }
}

fn check_lines(answer: &str, folder: &Path, lines: &[&str]) -> String {
    let mut problems = String::new();
    let file = |line: &str| {
        let (path, text) = line.split_once(": ").expect("path: text");
        let whole = fs::read_to_string(folder.join(path)).unwrap_or_default();
        (whole, text.replace("\\n", "\n"))
    };
    for line in lines {
        let is_right = match line.split_at_checked(2) {
            Some(("+ ", part)) => answer.contains(part),
            Some(("- ", part)) => !answer.contains(part),
            Some(("= ", rest)) => {
                let (whole, text) = file(rest);
                whole.contains(&text)
            }
            Some(("~ ", rest)) => {
                let (whole, text) = file(rest);
                !whole.contains(&text)
            }
            _ if *line == "none" => {
                answer.starts_with("I work offline, without a model, and can do nothing but")
                    && answer.contains("`turnery login`")
                    && answer.contains("- what changed?")
            }
            _ => panic!("what is {line:?}?"),
        };
        if !is_right {
            let _ = writeln!(problems, "{line}");
        }
    }
    problems
}

#[tokio::test]
async fn listed_questions_are_answered() {
    let shared = repository();
    let (mut asked, mut wrong) = (0, String::new());
    let blocks = include_str!("questions.txt").split("\n\n");
    for block in blocks.filter(|block| block.starts_with('?')) {
        let lines: Vec<&str> = block.lines().collect();
        let (own, prompt) = match lines[0].strip_prefix("?!") {
            Some(prompt) => (Some(repository()), prompt),
            None => (None, &lines[0][1..]),
        };
        let folder = own.as_ref().unwrap_or(&shared).path();
        let prompt = prompt.trim().replace("\\n", "\n");
        let answer = run_prompt(folder, &prompt).await;
        let problems = check_lines(&answer, folder, &lines[1..]);
        if !problems.is_empty() {
            let _ = writeln!(wrong, "\n{}\n{problems}in the answer:\n{answer}", lines[0]);
        }
        asked += 1;
    }
    assert!(asked >= 108, "only {asked} questions");
    assert!(wrong.is_empty(), "{wrong}");
}

/// 100 folders with 500 files each. A search shows 1000 lines at most.
#[tokio::test]
async fn counts_are_correct_for_50_000_files() {
    let folder = TempDir::new().expect("a folder");
    for at in 0..50_000 {
        let path = folder.path().join(format!("d{:02}", at / 500));
        if at % 500 == 0 {
            fs::create_dir(&path).expect("a folder");
        }
        let rare = if at % 10_000 == 9_999 {
            "rare_name\n"
        } else {
            ""
        };
        let text = format!("// TODO: {at}\nneedle\n{rare}");
        fs::write(path.join(format!("f{at}.rs")), text).expect("written");
    }
    for (prompt, expected) in [
        ("how many *.rs files?", "`*.rs`: 50000 files"),
        (
            "search for needle",
            "on at least 1000 lines in at least 1000 files",
        ),
        (
            "list the TODOs",
            "on at least 1000 lines in at least 1000 files",
        ),
        (
            "search for rare_name",
            "`rare_name` is on 5 lines in 5 files",
        ),
        (
            "replace `needle` with `pin`",
            "Nothing was changed: `needle` is on at least 1000 lines",
        ),
        (
            "replace `rare_name` with `pin`",
            "Replaced `rare_name` with `pin` in 5 places in 5 files",
        ),
    ] {
        let answer = run_prompt(folder.path(), prompt).await;
        assert!(answer.contains(expected), "{prompt}: {answer}");
    }
}
