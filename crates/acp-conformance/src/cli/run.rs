//! Runs `run`: plays cases against an agent and writes the report.

use super::{
    load::{load_cases, load_requirements},
    progress::{Progress, detect_colours},
    rules::parse_level,
};
use acp_conformance::{
    AgentSpec, Case, CaseOutcome, PlayOptions, Requirements, SuiteResult, play_suite,
    profile::Profile,
    replay::replay_failures,
    report::{self, Colours, Report, TestedAgent},
    requirements::Level,
    suggestions::unknown_name_message,
    verdict::{FailurePolicy, judge_rules, parse_expected_failures},
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

/// Arguments of `run`.
#[derive(Args)]
pub(crate) struct RunArgs {
    /// Case files, or folders of `.case` files, instead of the built-in cases.
    cases: Vec<PathBuf>,
    /// Command line of the agent, split into words as by a shell.
    #[arg(long, conflicts_with = "command")]
    agent: Option<String>,
    /// Profile that points the agent at the fake model: a name or a file. Its command is used if no other is
    /// given.
    #[arg(long)]
    profile: Option<String>,
    /// Only these rules, with the cases that check them, or only these cases.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Only rules of these levels: must, must-not, fact, should, should-not, interop, may.
    #[arg(long, value_delimiter = ',', value_parser = parse_level)]
    level: Vec<Level>,
    /// File of rules that are known to fail, one per line.
    #[arg(long)]
    expected_failures: Option<PathBuf>,
    /// Broken SHOULD and interop rules fail the run as well.
    #[arg(long)]
    strict: bool,
    /// Format of the report.
    #[arg(long, value_enum, default_value_t = ReportFormat::Pretty)]
    format: ReportFormat,
    /// File for the report, instead of stdout.
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Number of cases played at once, instead of one per core.
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    jobs: Option<usize>,
    /// Seconds to wait for a line from the agent; twice as long at the first start, and longer if that start
    /// is slow.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
    /// Measure time limits of cases on the real clock. Without this, they are longer while the machine is
    /// busy.
    #[arg(long)]
    real_time: bool,
    /// Milliseconds to wait for messages that must not come.
    #[arg(long, default_value_t = 150)]
    grace: u64,
    /// Environment variables to pass to the agent, besides PATH, the language and the time zone.
    #[arg(long, value_delimiter = ',')]
    pass: Vec<String>,
    /// Folder in which the agent of the profile is installed.
    #[arg(long)]
    install: Option<PathBuf>,
    /// Command line of the agent.
    #[arg(last = true)]
    command: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum ReportFormat {
    /// Text for a terminal.
    Pretty,
    /// JSON for programs; see schemas/conformance-report.json.
    Json,
    /// JUnit XML for build servers.
    Junit,
    /// Markdown for a page of a repository.
    Markdown,
    /// Single self-contained HTML page.
    Html,
}

/// Plays the cases and writes the report; returns true if the agent keeps the rules.
pub(crate) fn run(args: &RunArgs) -> Result<bool> {
    let mut requirements = load_requirements()?;
    reject_command_as_cases(args)?;
    let all = load_cases(&args.cases, &requirements)?;
    let expected = read_expected_failures(args, &requirements)?;
    let is_partial = is_partial_run(args, &requirements);
    let cases = select_cases(all, &mut requirements, args)?;
    let agent = resolve_agent(args)?;
    // An unwritable output file is reported before the cases are played.
    let output = args.output.as_deref().map(open_output).transpose()?;
    let usual = PlayOptions::default();
    let options = PlayOptions {
        patience: Duration::from_secs(args.patience),
        quiet_pause: Duration::from_millis(args.grace),
        jobs: args.jobs.unwrap_or(usual.jobs),
        real_time: args.real_time,
    };
    let policy = FailurePolicy {
        requirements: &requirements,
        expected: &expected,
        strict: args.strict,
    };
    let progress = Progress::new(cases.len());
    let on_outcome = |outcome: &CaseOutcome| progress.report_case(outcome, &policy);
    let mut played =
        play_suite(&cases, &agent, &options, None, &on_outcome).map_err(anyhow::Error::msg)?;
    let flaky = replay_failures(&mut played, &cases, &agent, &options, &|_| ())
        .map_err(anyhow::Error::msg)?;
    progress.clear();
    let mut verdicts = judge_rules(&requirements, &played.outcomes, &expected);
    // A flaky rule stays on the list of expected failures.
    let is_flaky = |id: &String| flaky.iter().any(|flaky| flaky.rule == *id);
    verdicts.unexpected_passes.retain(|id| !is_flaky(id));
    if is_partial {
        // Cases outside this run may check these rules.
        verdicts.unseen.clear();
    }
    let tested = describe_tested_agent(args, &agent, &played);
    let report = Report::new(tested, &policy, &verdicts, &played, &flaky);
    write_report(args.format, output, &report)?;
    if let Some(why) = &played.unplayed_reason {
        print_stderr(why);
        return Ok(false);
    }
    // The report is written even if a case itself is faulty.
    if let Some((case, fault)) = report.faulty_cases().next() {
        bail!("the case {case} is at fault itself: {fault}");
    }
    Ok(report.is_conformant())
}

fn print_stderr(text: &str) {
    // stderr may be closed.
    let _ = writeln!(
        io::stderr(),
        "acp-conformance: {}",
        report::sanitize_lines(text)
    );
}

/// Detects an agent's command that was given without `--` or quotes, and so parsed as cases.
fn reject_command_as_cases(args: &RunArgs) -> Result<()> {
    let is_case =
        |path: &PathBuf| path.is_dir() || path.extension().is_some_and(|end| end == "case");
    let Some(first) = args.cases.iter().find(|path| !is_case(path)) else {
        return Ok(());
    };
    let words = args.cases.iter().map(|path| path.display().to_string());
    let words: Vec<String> = args.agent.iter().cloned().chain(words).collect();
    bail!(
        "{} is no case; an agent's command goes behind `--`: acp-conformance run -- {}",
        first.display(),
        words.join(" ")
    )
}

/// Returns true if cases that check a selected rule may be left out, because the arguments name single cases
/// or files.
fn is_partial_run(args: &RunArgs, requirements: &Requirements) -> bool {
    let mut only = args.only.iter();
    only.any(|name| requirements.find_rule(name).is_none())
        || args.cases.iter().any(|path| !path.is_dir())
}

/// Returns the cases that `--only` and `--level` select, and drops the rules that they exclude.
fn select_cases(
    cases: Vec<Case>,
    requirements: &mut Requirements,
    args: &RunArgs,
) -> Result<Vec<Case>> {
    let mut rules = Vec::new();
    for name in &args.only {
        if let Some(rule) = requirements.find_rule(name) {
            rules.push(rule.id.clone());
        } else if cases.iter().all(|case| case.name != *name) {
            let ids = requirements.rules.iter().map(|rule| rule.id.as_str());
            let names = cases.iter().map(|case| case.name.as_str());
            bail!(unknown_name_message(
                name,
                "rule and no case",
                ids.chain(names)
            ));
        }
    }
    let names_cases = args.only.len() > rules.len();
    if !rules.is_empty() && !names_cases {
        requirements.rules.retain(|rule| rules.contains(&rule.id));
    }
    if !args.level.is_empty() {
        let levels = &args.level;
        requirements
            .rules
            .retain(|rule| levels.contains(&rule.level));
    }
    if requirements.rules.is_empty() {
        bail!("--only and --level leave no rule");
    }
    if args.only.is_empty() {
        return Ok(cases);
    }
    rules.retain(|id| requirements.rule(id).is_some());
    let cited = |case: &Case| {
        case.cited_rules()
            .iter()
            .any(|rule| rules.iter().any(|id| id == rule))
    };
    let is_watched = |rule: &String| {
        !cases
            .iter()
            .any(|case| case.cited_rules().contains(&rule.as_str()))
    };
    // Rules that no case cites are watched in every case.
    let takes_all = rules.iter().any(is_watched);
    let is_chosen = |case: &Case| takes_all || args.only.contains(&case.name) || cited(case);
    Ok(cases.into_iter().filter(is_chosen).collect())
}

fn read_expected_failures(args: &RunArgs, requirements: &Requirements) -> Result<BTreeSet<String>> {
    let Some(path) = &args.expected_failures else {
        return Ok(BTreeSet::new());
    };
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse_expected_failures(&text, requirements)
        .map_err(anyhow::Error::msg)
        .with_context(|| path.display().to_string())
}

fn resolve_agent(args: &RunArgs) -> Result<AgentSpec> {
    let profile = args.profile.as_deref().map(Profile::find).transpose()?;
    let command = match &args.agent {
        Some(line) => split_command_line(line)?,
        None => args.command.clone(),
    };
    if command.is_empty() && profile.is_none() {
        bail!("say which agent: --agent \"COMMAND\", --profile NAME, or -- COMMAND");
    }
    for name in args
        .pass
        .iter()
        .filter(|name| std::env::var_os(name).is_none())
    {
        print_stderr(&format!(
            "warning: --pass {name}: there is no such variable"
        ));
    }
    Ok(AgentSpec {
        command,
        profile,
        install_folder: args.install.clone(),
        passed_variables: args.pass.clone(),
    })
}

/// Describes the agent by its own name, or else by its profile or command.
fn describe_tested_agent(args: &RunArgs, agent: &AgentSpec, played: &SuiteResult) -> TestedAgent {
    let info = &played.facts.initialize["agentInfo"];
    let info = |key: &str| info[key].as_str().filter(|text| !text.trim().is_empty());
    let profile = agent.profile.as_ref();
    let command = match (&args.agent, profile) {
        (Some(line), _) => line.clone(),
        (None, Some(profile)) if args.command.is_empty() => profile.command.join(" "),
        (None, _) => args.command.join(" "),
    };
    let name = info("title").or_else(|| info("name"));
    let name = name.or_else(|| profile.map(|profile| profile.name.as_str()));
    TestedAgent {
        name: name.unwrap_or(&command).to_owned(),
        version: info("version").map(str::to_owned),
        command,
        profile: args.profile.clone(),
    }
}

/// Opens an existing output file without truncating it; for a new file, checks that it can be created and
/// returns only its path.
fn open_output(path: &Path) -> Result<(Option<File>, &Path)> {
    let mut options = OpenOptions::new();
    let is_new = !path.exists();
    let file = options.write(true).create(true).truncate(false).open(path);
    let file = file.with_context(|| path.display().to_string())?;
    if is_new {
        fs::remove_file(path).with_context(|| path.display().to_string())?;
    }
    Ok(((!is_new).then_some(file), path))
}

fn write_report(
    format: ReportFormat,
    output: Option<(Option<File>, &Path)>,
    report: &Report,
) -> Result<()> {
    let text = match format {
        ReportFormat::Pretty if output.is_none() => {
            report::render_pretty(report, detect_colours(&io::stdout()))
        }
        ReportFormat::Pretty => report::render_pretty(report, Colours::Off),
        ReportFormat::Json => report::render_json(report),
        ReportFormat::Junit => report::render_junit(report),
        ReportFormat::Markdown => report::render_markdown(report),
        ReportFormat::Html => report::render_html(report),
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
    // Pipes and devices cannot be truncated.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(text)
}

/// Splits a command line into words at blanks that are neither quoted nor escaped by a backslash.
fn split_command_line(line: &str) -> Result<Vec<String>> {
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
    fn command_line_is_split_like_a_shell() {
        let read = |line: &str| split_command_line(line).unwrap();
        assert_eq!(read("  my-agent  --acp "), ["my-agent", "--acp"]);
        assert_eq!(
            read(r#"a "b c" 'd "e' f\ g "" x"y"z"#),
            ["a", "b c", "d \"e", "f g", "", "xyz"]
        );
        assert_eq!(read(r#""a\"b" 'c\d'"#), ["a\"b", "c\\d"]);
        assert!(split_command_line("a 'b").is_err());
        assert!(split_command_line("a \\").is_err());
    }
}
