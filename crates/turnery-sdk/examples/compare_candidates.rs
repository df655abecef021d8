//! Lets two candidates fix a bug, each in a git work tree of its own, and takes the fix that passes the tests. Run it
//! with `cargo run -p turnery-sdk --example compare_candidates`.

use std::{error::Error, fs, path::Path, process::Command};
use turnery_sdk::{
    Candidate, JudgeCommand, ObservedEvent, SelectionStrategy, WinnerChanges,
    models::{ModelName, ModelRegistry, Scenario, ScriptedModel},
    prelude::*,
    tools,
};

/// The bug: a product instead of a sum.
const PROGRAM: &str = "echo $(($1 * $2))\n";
const TESTS: &str = "test \"$(sh add.sh 2 3)\" = 5 && test \"$(sh add.sh 2 2)\" = 4\n";

/// Returns a model that replaces the program. Any two models, prompts or temperatures can be compared like this.
fn fixing_model(name: &str, program: &str) -> Result<ScriptedModel, Box<dyn Error>> {
    let write = json!({"name": "write_file", "args": {"path": "add.sh", "content": program}});
    let script = json!({"name": name, "answers": [
        {"steps": [{"tool_call": write}]},
        {"steps": [{"text": format!("{name} has fixed it.")}]},
    ]});
    let scenario = Scenario::parse(&script.to_string(), Path::new("SCRIPT"))?;
    Ok(ScriptedModel::new(scenario))
}

/// Compares two fixes of the bug in `folder`, and applies the better one.
async fn compare(folder: &Path) -> Result<PromptOutput, Box<dyn Error>> {
    let models = ModelRegistry::new(Vec::new())
        .with_model(std::sync::Arc::new(fixing_model("hasty", "echo 5\n")?))
        .with_model(std::sync::Arc::new(fixing_model(
            "careful",
            "echo $(($1 + $2))\n",
        )?));
    let agent = AgentBuilder::new("scripted/hasty")?
        .models(models)
        .tools(Toolbox::coding())
        // Edits are allowed, so nobody is asked about them, or about the winner's.
        .settings(|settings| settings.mode = Mode::Edit)
        .build();
    let session = agent.new_session().folder(folder).open().await?;
    let candidate = |name: &str| -> Result<Candidate, Box<dyn Error>> {
        Ok(Candidate {
            mode: Some(Mode::Edit),
            ..Candidate::from(name.parse::<ModelName>()?)
        })
    };
    let candidates = vec![candidate("scripted/hasty")?, candidate("scripted/careful")?];
    let judge = SelectionStrategy::Command(JudgeCommand::new("sh test.sh"));
    let mut observer = session.observe(None);
    let prompt = session.new_evaluation("The tests fail. Fix add.sh.", candidates, judge);
    let output = prompt.run().await?;
    while let Some(ObservedEvent::CandidatesStarted { .. } | ObservedEvent::Activity(_)) =
        observer.next().await
    {
        // A user interface shows each activity in the column of its loop.
    }
    Ok(output)
}

/// Creates the project: a program with a bug, its tests, and a repository.
fn create_project(folder: &Path) -> Result<(), Box<dyn Error>> {
    fs::write(folder.join("add.sh"), PROGRAM)?;
    fs::write(folder.join("test.sh"), TESTS)?;
    let identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
    for args in [
        &["init", "--quiet"][..],
        &["add", "."],
        &["commit", "--quiet", "-m", "A program"],
    ] {
        let git = Command::new("git")
            .args(identity)
            .args(args)
            .current_dir(folder)
            .status()?;
        assert!(git.success(), "git {args:?}");
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "this is the program's output")]
fn main() -> Result<(), Box<dyn Error>> {
    tools::processes::init();
    let folder = tempfile::tempdir()?;
    create_project(folder.path())?;
    let output = block_on(compare(folder.path()))?;
    println!("{}", output.text().unwrap_or_default());
    if let Some(WinnerChanges::Applied { files }) = &output.result.changes {
        println!("Applied: {files:?}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn fix_that_passes_the_tests_is_applied() {
        let folder = tempfile::tempdir().unwrap();
        create_project(folder.path()).unwrap();
        let output = compare(folder.path()).await.unwrap();
        let program = fs::read_to_string(folder.path().join("add.sh")).unwrap();
        assert_eq!(program, "echo $(($1 + $2))\n");
        assert_eq!(output.text().as_deref(), Some("careful has fixed it."));
        let group = output.result.loops[0].parallel_group.as_ref().unwrap();
        let judged = group.command.as_ref().unwrap();
        let codes: Vec<Option<i32>> = judged.results.iter().map(|it| it.exit_code).collect();
        assert_eq!(codes, [Some(1), Some(0)]);
        let listed = Command::new("git")
            .args(["worktree", "list"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(listed.stdout).unwrap().lines().count(), 1);
    }
}
