//! Repository: what a project is, from its README, its manifest and its files, and how to build and
//! test it. All of it by reading alone.

use super::{
    intent::Job,
    output::{Leaf, count, list, numbered, short, tree},
    project::Project,
    replay::{Halt, Replay},
    rules::pattern,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) fn explain(replay: &mut Replay<'_>) -> Result<(), Halt> {
    let steps = [
        "Look at the files".to_owned(),
        "Read the README and the manifest".to_owned(),
    ];
    replay.plan(&steps, 0)?;
    let listing = replay.must("list_dir", json!({"path": ".", "depth": 1}))?;
    let all = replay.must("list_dir", json!({"path": ".", "depth": 10}))?;
    let (leaves, cut) = tree(&all);
    let files: Vec<&str> = leaves.iter().map(|leaf| leaf.path.as_str()).collect();
    if files.is_empty() {
        replay.say("There are no files here yet, or git ignores all of them.\n");
        return Ok(());
    }
    let project = Project::of(&listing);
    replay.plan(&steps, 1)?;
    let (readme, manifest) = beginnings(&files, project, replay)?;
    replay.plan(&steps, 2)?;

    replay.say(about(&readme, &manifest, project));
    replay.say(layout(&files, cut));
    let mut sources: Vec<&Leaf> = leaves
        .iter()
        .filter(|leaf| leaf.bytes > 0 && is_source(&leaf.path))
        .collect();
    sources.sort_by_key(|leaf| std::cmp::Reverse(leaf.bytes));
    let biggest: Vec<String> = sources
        .iter()
        .take(6)
        .map(|leaf| format!("{} ({} KiB)", leaf.path, leaf.bytes.div_ceil(1024)))
        .collect();
    if files.len() > 4 && !biggest.is_empty() {
        replay.say(format!(
            "\nThe biggest source files:\n{}",
            list(&biggest, 6)
        ));
    }
    let entries: Vec<&str> = files
        .iter()
        .copied()
        .filter(|path| is_entry(path))
        .collect();
    if !entries.is_empty() {
        replay.say(format!("\nWhere it begins:\n{}", list(&entries, 12)));
    }
    if let Some(project) = project {
        replay.say(format!(
            "\nBuild it with `{}`, test it with `{}`.\n",
            project.command(&Job::Build),
            project.command(&Job::Tests(None))
        ));
    }
    replay.say("\nGo on with: outline FILE, where is NAME defined, run the tests.\n");
    Ok(())
}

/// How the README and the manifest begin; nothing where there is none.
pub(super) fn beginnings(
    files: &[&str],
    project: Option<Project>,
    replay: &mut Replay<'_>,
) -> Result<(String, String), Halt> {
    let readme = files
        .iter()
        .copied()
        .find(|path| !path.contains('/') && path.to_lowercase().starts_with("readme"));
    let manifest = project
        .map(Project::manifest)
        .filter(|name| files.contains(name));
    let wanted: Vec<_> = readme
        .into_iter()
        .chain(manifest)
        .map(|path| {
            (
                "read_file",
                json!({"path": path, "start_line": 1, "end_line": 150}),
            )
        })
        .collect();
    let mut read = replay.calls(wanted)?.into_iter().map(|seen| {
        if seen.failed {
            String::new()
        } else {
            seen.text
        }
    });
    let readme = readme.and_then(|_| read.next()).unwrap_or_default();
    let manifest = manifest.and_then(|_| read.next()).unwrap_or_default();
    Ok((readme, manifest))
}

pub(super) fn about(readme: &str, manifest: &str, project: Option<Project>) -> String {
    let readme: Vec<&str> = numbered(readme, 1)
        .into_iter()
        .map(|(_, line)| line)
        .collect();
    let manifest: Vec<&str> = numbered(manifest, 1)
        .into_iter()
        .map(|(_, line)| line)
        .collect();
    let manifest = manifest.join("\n");
    let title = readme
        .iter()
        .find_map(|line| line.strip_prefix("# "))
        .map(str::to_owned)
        .or_else(|| field(&manifest, "name"));
    let mut text = match (&title, project) {
        (Some(title), Some(project)) => format!("{title} is {}.\n", project.name()),
        (None, Some(project)) => format!("This is {}.\n", project.name()),
        (Some(title), None) => format!("{title}\n"),
        (None, None) => {
            "I see no manifest that I know, so I cannot say how this is built.\n".to_owned()
        }
    };
    let described = paragraph(&readme).or_else(|| field(&manifest, "description"));
    if let Some(described) = described {
        text.push_str(&format!("\n> {}\n", short(&described, 600)));
    }
    text
}

/// The first paragraph of prose.
fn paragraph(lines: &[&str]) -> Option<String> {
    let prose = |line: &&str| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with(['#', '[', '!', '<', '|', '`', '-', '*', '=', '>'])
    };
    let start = lines.iter().position(prose)?;
    let words: Vec<&str> = lines[start..]
        .iter()
        .take_while(|line| prose(line))
        .map(|line| line.trim())
        .collect();
    Some(words.join(" "))
}

fn field(manifest: &str, key: &str) -> Option<String> {
    if let Ok(Value::Object(object)) = serde_json::from_str::<Value>(manifest) {
        return Some(object.get(key)?.as_str()?.to_owned());
    }
    let line = manifest
        .lines()
        .find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='))?;
    let value = line.trim().trim_matches('"');
    (!value.is_empty() && !value.contains('{')).then(|| value.to_owned())
}

/// Folders with their number of files, and the languages.
pub(super) fn layout(files: &[&str], cut: bool) -> String {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    let mut endings: BTreeMap<&str, usize> = BTreeMap::new();
    let packed = ["crates", "packages", "apps", "libs"];
    for path in files {
        let mut cuts = path.match_indices('/').map(|(at, _)| at);
        let first = cuts.next();
        let folder = match (first, cuts.next()) {
            (Some(first), Some(second)) if packed.contains(&&path[..first]) => &path[..second],
            (Some(first), _) => &path[..first],
            (None, _) => ".",
        };
        *folders.entry(folder).or_default() += 1;
        let name = path.rsplit('/').next().unwrap_or(path);
        if let Some((stem, ending)) = name.rsplit_once('.')
            && !stem.is_empty()
        {
            *endings.entry(ending).or_default() += 1;
        }
    }
    let sorted = |map: BTreeMap<&str, usize>| {
        let mut all: Vec<(String, usize)> = map
            .into_iter()
            .map(|(key, number)| (key.to_owned(), number))
            .collect();
        all.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
        all
    };
    let endings: Vec<String> = sorted(endings)
        .into_iter()
        .take(5)
        .map(|(ending, number)| format!("{number} .{ending}"))
        .collect();
    let folders: Vec<String> = sorted(folders)
        .into_iter()
        .map(|(folder, number)| match folder.as_str() {
            "." => format!("{} at the top", count(number, "file")),
            _ => format!("{folder}/: {}", count(number, "file")),
        })
        .collect();
    format!(
        "\n{}{} ({}):\n{}",
        if cut { "At least " } else { "" },
        count(files.len(), "file"),
        endings.join(", "),
        list(&folders, 16)
    )
}

fn is_source(path: &str) -> bool {
    pattern!(r"\.(rs|py|js|mjs|jsx|ts|tsx|go|c|h|cc|cpp|hpp|java|kt|rb|php|cs|swift|sh|zig|lua|ex|hs|ml|scala|vue|svelte)$").is_match(path)
}

fn is_entry(path: &str) -> bool {
    pattern!(r"(^|/)(src/main\.rs|src/bin/[^/]+\.rs|__main__\.py|main\.(py|go|c|cpp|ts|js)|manage\.py|app\.py|index\.(js|ts)|src/(index|main|App)\.(tsx?|jsx?))$|^src/lib\.rs$").is_match(path)
        && !path.contains("node_modules/")
}
