//! Agents: an AGENTS.md of what can be told without understanding: what the README says, the commands that
//! the manifest stands for, and the folders.

use super::{
    intent::Job,
    output::tree,
    project::Project,
    replay::{Halt, Replay},
    repository::{about, beginnings, layout},
};
use serde_json::json;

const FILE: &str = "AGENTS.md";

pub(super) fn write(replay: &mut Replay<'_>) -> Result<(), Halt> {
    let listing = replay.must("list_dir", json!({"path": ".", "depth": 1}))?;
    let all = replay.must("list_dir", json!({"path": ".", "depth": 10}))?;
    let (leaves, cut) = tree(&all);
    let files: Vec<&str> = leaves.iter().map(|leaf| leaf.path.as_str()).collect();
    if files.contains(&FILE) {
        replay.say(format!(
            "There is an {FILE} already, and I leave it as it is: to improve it needs a model, and none is \
             connected.\n"
        ));
        return Ok(());
    }
    let project = Project::of(&listing);
    let (readme, manifest) = beginnings(&files, project, replay)?;
    let mut text = about(&readme, &manifest, project);
    if let Some(project) = project {
        text.push_str("\n## Commands\n\n");
        for (what, job) in [
            ("Build", Job::Build),
            ("Check", Job::Lint),
            ("Test", Job::Tests(None)),
            ("One test", Job::Tests(Some("NAME".to_owned()))),
        ] {
            text.push_str(&format!("- {what}: `{}`\n", project.command(&job)));
        }
    }
    text.push_str("\n## Layout\n");
    text.push_str(&layout(&files, cut));
    replay.must("write_file", json!({"path": FILE, "content": text}))?;
    replay.say(format!(
        "{FILE} says what the README and the manifest say, which commands there are, and where the files \
         lie. What the parts are for, and which rules hold, is for you or a model to add.\n"
    ));
    Ok(())
}
