//! Proposal: the rule that "always allow" adds. As narrow as is still of use: a subcommand of a
//! program known to have them with any further arguments, any other command exactly as it is.

use super::{Rule, line::Command, rule::SHELL, word};

/// Programs whose first argument says what sort of thing they do.
const WITH_SUBCOMMANDS: &[&str] = &[
    "bundle",
    "cargo",
    "composer",
    "dotnet",
    "gem",
    "gh",
    "git",
    "go",
    "gradle",
    "gradlew",
    "just",
    "make",
    "meson",
    "mix",
    "mvn",
    "mvnw",
    "ninja",
    "npm",
    "pip",
    "pip3",
    "pnpm",
    "poetry",
    "rake",
    "rustup",
    "swift",
    "terraform",
    "tox",
    "uv",
    "yarn",
    "zig",
];

/// Subcommands that say what they do only with the next word.
const WITH_ONE_MORE: &[(&str, &str)] = &[
    ("bundle", "exec"),
    ("gh", "issue"),
    ("gh", "pr"),
    ("gh", "repo"),
    ("git", "remote"),
    ("git", "stash"),
    ("git", "worktree"),
    ("npm", "run"),
    ("pnpm", "run"),
    ("poetry", "run"),
    ("uv", "run"),
    ("yarn", "run"),
];

/// Subcommands that destroy, publish, or run what their arguments say: each is asked about by itself.
const EXACT: &[(&str, &str)] = &[
    ("cargo", "publish"),
    ("git", "checkout"),
    ("git", "clean"),
    ("git", "config"),
    ("git", "filter-branch"),
    ("git", "push"),
    ("git", "rebase"),
    ("git", "reset"),
    ("git", "restore"),
    ("git", "submodule"),
    ("npm", "exec"),
    ("npm", "publish"),
    ("pnpm", "dlx"),
    ("pnpm", "exec"),
    ("rustup", "run"),
    ("terraform", "apply"),
    ("terraform", "destroy"),
    ("yarn", "dlx"),
    ("yarn", "exec"),
];

/// The rule that would allow this command and its like; none when its words are not certain.
pub(crate) fn for_command(command: &Command) -> Option<Rule> {
    if command.opaque || command.name.is_empty() {
        return None;
    }
    let lead = lead(command);
    let text = match lead {
        Some(words) => format!("{SHELL}({}:*)", word::quote(&words)),
        None => format!("{SHELL}({})", word::quote(&command.literal()?)),
    };
    text.parse::<Rule>()
        .ok()
        .filter(|rule| rule.allows(command))
}

fn lead(command: &Command) -> Option<Vec<&str>> {
    let name = command.name.as_str();
    let arg = |at: usize| {
        let word = command.args.get(at)?.literal()?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-:.".contains(c);
        (word.starts_with(|c: char| c.is_ascii_alphanumeric()) && word.chars().all(plain))
            .then_some(word)
    };
    if matches!(name, "python" | "python3") {
        let is_module = command.args.first()?.literal()? == "-m";
        return is_module.then(|| Some(vec![name, "-m", arg(1)?])).flatten();
    }
    let program = super::carriers::base_name(name);
    if !WITH_SUBCOMMANDS.contains(&program) {
        return None;
    }
    let first = arg(0)?;
    if EXACT.contains(&(program, first)) {
        return None;
    }
    if WITH_ONE_MORE.contains(&(program, first)) {
        let next = arg(1)?;
        return (!super::carriers::runs_text(next)).then(|| vec![name, first, next]);
    }
    Some(vec![name, first])
}
