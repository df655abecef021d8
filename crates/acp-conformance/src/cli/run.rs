//! `run`: cases against an agent, and the report.

use super::{
    cases,
    progress::{Progress, colours},
    requirements,
    table::level,
};
use acp_conformance::{
    Agent, Case, Options, Outcome, Played, Requirements,
    near::unknown,
    play_all,
    profile::Profile,
    replay::replay,
    report::{self, Colours, Report, Tested},
    requirements::Level,
    verdict::{Measure, expected_failures, judge},
};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum, builder::RangedU64ValueParser};
use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    time::Duration,
};

/// `run`.
#[derive(Args)]
pub(crate) struct Run {
    /// Cases: files, or folders of `.case` files; else those that come along.
    cases: Vec<PathBuf>,
    /// The agent's command line, as a shell would read it.
    #[arg(long, conflicts_with = "command")]
    agent: Option<String>,
    /// How the agent is pointed at the fake model: a name, or a file. Its command is used if none is given.
    #[arg(long)]
    profile: Option<String>,
    /// Only these: rules, with the cases that check them, or cases.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only rules of these levels: must, must-not, fact, should, should-not, interop, may.
    #[arg(long, value_delimiter = ',', value_parser = level)]
    level: Vec<Level>,
    /// A file of rules that are known to be broken, one a line.
    #[arg(long)]
    expected_failures: Option<PathBuf>,
    /// Broken SHOULDs, and what clients insist on, count as well.
    #[arg(long)]
    strict: bool,
    /// What the report is written as.
    #[arg(long, value_enum, default_value_t = Format::Pretty)]
    format: Format,
    /// Where the report goes, instead of stdout.
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// How many cases are played at once; else one for each core.
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    jobs: Option<usize>,
    /// Seconds to wait for a line of the agent: twice as long at its first start, and longer if that is slow.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
    /// Measure the bounds of the cases on the real clock. Without this, they are longer while the machine is busy.
    #[arg(long)]
    real_time: bool,
    /// Milliseconds to wait for what should not come.
    #[arg(long, default_value_t = 150)]
    grace: u64,
    /// Environment variables that the agent gets too; of ours it has only PATH, the language and the time zone.
    #[arg(long, value_delimiter = ',')]
    pass: Vec<String>,
    /// Where the agent of the profile was installed.
    #[arg(long)]
    install: Option<PathBuf>,
    /// The agent's command line.
    #[arg(last = true)]
    command: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Text for a terminal.
    Pretty,
    /// For programs; see schemas/conformance-report.json.
    Json,
    /// For build servers.
    Junit,
    /// For a page of a repository.
    Markdown,
    /// One page that needs nothing else.
    Html,
}

/// Whether the agent keeps the rules.
pub(crate) fn run(run: &Run) -> Result<bool> {
    let mut requirements = requirements()?;
    no_command(run)?;
    let all = cases(&run.cases, &requirements)?;
    let expected = expected(run, &requirements)?;
    let is_part = is_part(run, &requirements);
    let cases = chosen(all, &mut requirements, run)?;
    let agent = agent(run)?;
    // Whether it can be written is known before the cases are played.
    let output = run.output.as_deref().map(opened).transpose()?;
    let usual = Options::default();
    let options = Options {
        patience: Duration::from_secs(run.patience),
        grace: Duration::from_millis(run.grace),
        jobs: run.jobs.unwrap_or(usual.jobs),
        real_time: run.real_time,
    };
    let measure = Measure {
        requirements: &requirements,
        expected: &expected,
        strict: run.strict,
    };
    let progress = Progress::new(cases.len());
    let over = |outcome: &Outcome| progress.tell(outcome, &measure);
    let mut played = play_all(&cases, &agent, &options, None, &over).map_err(anyhow::Error::msg)?;
    let flaky =
        replay(&mut played, &cases, &agent, &options, &|_| ()).map_err(anyhow::Error::msg)?;
    progress.clear();
    let mut verdicts = judge(&requirements, &played.outcomes, &expected);
    // What was seen broken in one play is no reason to take it off the list.
    let is_flaky = |id: &String| flaky.iter().any(|flaky| flaky.rule == *id);
    verdicts.unexpected_passes.retain(|id| !is_flaky(id));
    if is_part {
        // The other cases may have seen something of them.
        verdicts.unseen.clear();
    }
    let tested = tested(run, &agent, &played);
    let report = Report::new(tested, &measure, &verdicts, &played, &flaky);
    write(run.format, output, &report)?;
    if let Some(why) = &played.stopped {
        say(why);
        return Ok(false);
    }
    // The others are told of all the same.
    if let Some((case, fault)) = report.faults().next() {
        bail!("the case {case} is at fault itself: {fault}");
    }
    Ok(report.is_kept())
}

fn say(text: &str) {
    // Who has closed stderr does not want to know.
    let _ = writeln!(io::stderr(), "acp-conformance: {}", report::lines(text));
}

/// Who forgets what comes before an agent's command, or the quotes around it, names its words as cases.
fn no_command(run: &Run) -> Result<()> {
    let is_case =
        |path: &PathBuf| path.is_dir() || path.extension().is_some_and(|end| end == "case");
    let Some(first) = run.cases.iter().find(|path| !is_case(path)) else {
        return Ok(());
    };
    let words = run.cases.iter().map(|path| path.display().to_string());
    let words: Vec<String> = run.agent.iter().cloned().chain(words).collect();
    bail!(
        "{} is no case; an agent's command goes behind `--`: acp-conformance run -- {}",
        first.display(),
        words.join(" ")
    )
}

/// Whether single cases are named: then there are others.
fn is_part(run: &Run, requirements: &Requirements) -> bool {
    let mut only = run.only.iter();
    only.any(|name| requirements.named(name).is_none())
        || run.cases.iter().any(|path| !path.is_dir())
}

/// The cases that `--only` and `--level` choose, and of the rules those that are left.
fn chosen(cases: Vec<Case>, requirements: &mut Requirements, run: &Run) -> Result<Vec<Case>> {
    let mut rules = Vec::new();
    for name in &run.only {
        if let Some(rule) = requirements.named(name) {
            rules.push(rule.id.clone());
        } else if cases.iter().all(|case| case.name != *name) {
            let ids = requirements.rules.iter().map(|rule| rule.id.as_str());
            let names = cases.iter().map(|case| case.name.as_str());
            bail!(unknown(name, "rule and no case", ids.chain(names)));
        }
    }
    let names_cases = run.only.len() > rules.len();
    if !rules.is_empty() && !names_cases {
        requirements.rules.retain(|rule| rules.contains(&rule.id));
    }
    if !run.level.is_empty() {
        let levels = &run.level;
        requirements
            .rules
            .retain(|rule| levels.contains(&rule.level));
    }
    if requirements.rules.is_empty() {
        bail!("--only and --level leave no rule");
    }
    if run.only.is_empty() {
        return Ok(cases);
    }
    rules.retain(|id| requirements.rule(id).is_some());
    let cited = |case: &Case| {
        case.rules()
            .iter()
            .any(|rule| rules.iter().any(|id| id == rule))
    };
    let is_watched = |rule: &String| {
        !cases
            .iter()
            .any(|case| case.rules().contains(&rule.as_str()))
    };
    // What is always watched is seen in every case.
    let takes_all = rules.iter().any(is_watched);
    let is_chosen = |case: &Case| takes_all || run.only.contains(&case.name) || cited(case);
    Ok(cases.into_iter().filter(is_chosen).collect())
}

fn expected(run: &Run, requirements: &Requirements) -> Result<BTreeSet<String>> {
    let Some(path) = &run.expected_failures else {
        return Ok(BTreeSet::new());
    };
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    expected_failures(&text, requirements)
        .map_err(anyhow::Error::msg)
        .with_context(|| path.display().to_string())
}

fn agent(run: &Run) -> Result<Agent> {
    let profile = run.profile.as_deref().map(Profile::find).transpose()?;
    let command = match &run.agent {
        Some(line) => words(line)?,
        None => run.command.clone(),
    };
    if command.is_empty() && profile.is_none() {
        bail!("say which agent: --agent \"COMMAND\", --profile NAME, or -- COMMAND");
    }
    for name in run
        .pass
        .iter()
        .filter(|name| std::env::var_os(name).is_none())
    {
        say(&format!(
            "warning: --pass {name}: there is no such variable"
        ));
    }
    Ok(Agent {
        command,
        profile,
        install: run.install.clone(),
        pass: run.pass.clone(),
    })
}

/// The agent as it names itself, else as its profile does, else by its command.
fn tested(run: &Run, agent: &Agent, played: &Played) -> Tested {
    let info = &played.facts.initialize["agentInfo"];
    let info = |key: &str| info[key].as_str().filter(|text| !text.trim().is_empty());
    let profile = agent.profile.as_ref();
    let command = match (&run.agent, profile) {
        (Some(line), _) => line.clone(),
        (None, Some(profile)) if run.command.is_empty() => profile.command.join(" "),
        (None, _) => run.command.join(" "),
    };
    let name = info("title").or_else(|| info("name"));
    let name = name.or_else(|| profile.map(|profile| profile.name.as_str()));
    Tested {
        name: name.unwrap_or(&command).to_owned(),
        version: info("version").map(str::to_owned),
        command,
        profile: run.profile.clone(),
    }
}

/// A file to be written later: until then it is as it was, or is not there.
fn opened(path: &Path) -> Result<(Option<File>, &Path)> {
    let mut options = OpenOptions::new();
    let is_new = !path.exists();
    let file = options.write(true).create(true).truncate(false).open(path);
    let file = file.with_context(|| path.display().to_string())?;
    if is_new {
        fs::remove_file(path).with_context(|| path.display().to_string())?;
    }
    Ok(((!is_new).then_some(file), path))
}

fn write(format: Format, output: Option<(Option<File>, &Path)>, report: &Report) -> Result<()> {
    let text = match format {
        Format::Pretty if output.is_none() => report::pretty(report, colours(&io::stdout())),
        Format::Pretty => report::pretty(report, Colours::Off),
        Format::Json => report::json(report),
        Format::Junit => report::junit(report),
        Format::Markdown => report::markdown(report),
        Format::Html => report::html(report),
    };
    match output {
        Some((file, path)) => {
            let written = match file {
                Some(file) => overwrite(file, text.as_bytes()),
                None => fs::write(path, text),
            };
            written.with_context(|| path.display().to_string())
        }
        None => io::stdout().write_all(text.as_bytes()).context("stdout"),
    }
}

fn overwrite(mut file: File, text: &[u8]) -> io::Result<()> {
    // Pipes and devices have no length.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(text)
}

/// The words of a command line: blanks part them, but not in quotes or behind a backslash.
fn words(line: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            (letter, Some(end)) if letter == end => quote = None,
            ('\\', None | Some('"')) => match letters.next() {
                Some(next) => word.get_or_insert_default().push(next),
                None => bail!("nothing follows the last backslash of {line:?}"),
            },
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        bail!("a quote of {line:?} is not closed");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_read_as_a_shell_would() {
        let read = |line: &str| words(line).unwrap();
        assert_eq!(read("  my-agent  --acp "), ["my-agent", "--acp"]);
        assert_eq!(
            read(r#"a "b c" 'd "e' f\ g "" x"y"z"#),
            ["a", "b c", "d \"e", "f g", "", "xyz"]
        );
        assert_eq!(read(r#""a\"b" 'c\d'"#), ["a\"b", "c\\d"]);
        assert!(words("a 'b").is_err());
        assert!(words("a \\").is_err());
    }
}
