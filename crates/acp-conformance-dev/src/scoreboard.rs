//! Installs the agents of the profiles, plays the suite against each, and writes the page that compares them.
//! Results are stored with each agent, so that one agent can be played again alone.

mod agent_results;
mod install;
mod manual_checks;
mod page;
mod path_redactor;

pub use agent_results::{AgentResults, FailureReason, RuleResult};
pub use path_redactor::PathRedactor;

use acp_conformance::{
    AgentSpec, Case, CaseOutcome, PlayOptions, SuiteResult, case_folder, play_suite,
    profile::Profile, replay::replay_failures, requirements::Requirements,
    suggestions::unknown_name_message,
};
use clap::{Args, builder::RangedU64ValueParser};
use manual_checks::ManualChecks;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// Install agents, play the suite against each, and write the results.
#[derive(Args, Debug)]
pub struct ScoreboardArgs {
    /// Folder for the installed agents and their stored results.
    #[arg(long)]
    scratch: PathBuf,
    /// Install and play only these profiles; the page shows stored results for the others.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Agent that is not installed from a registry: its profile, `=`, and its command line.
    #[arg(long, value_name = "PROFILE=COMMAND")]
    own: Vec<String>,
    /// Install without playing.
    #[arg(long)]
    install_only: bool,
    /// Folder of the cases, instead of the built-in ones.
    #[arg(long)]
    cases: Option<PathBuf>,
    /// Page to write.
    #[arg(long, default_value = "conformance/RESULTS.md")]
    page: PathBuf,
    /// File that lists the failures checked by hand, and how.
    #[arg(long, default_value = "conformance/checked.toml")]
    checked: PathBuf,
    /// Python for installing agents from PyPI.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Seconds to wait for a line.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
    /// Number of cases played at once.
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    jobs: Option<usize>,
    /// Measure time limits of the cases on the real clock. Without this, they are longer while the machine is
    /// busy, and an agent that ends too late is not found.
    #[arg(long)]
    real_time: bool,
}

impl ScoreboardArgs {
    /// Installs and plays the agents, and writes the page. `say` receives progress messages.
    ///
    /// # Errors
    /// If something is missing, or cannot be installed, read or written.
    pub fn run(&self, say: &(dyn Fn(&str) + Sync)) -> Result<(), String> {
        if let Some(name) = self
            .only
            .iter()
            .find(|name| !Profile::built_in_names().any(|it| it == *name))
        {
            return Err(unknown_name_message(
                name,
                "profile",
                Profile::built_in_names(),
            ));
        }
        let requirements = Requirements::built_in()?;
        let cases = case_folder::cases(self.cases.as_slice())?;
        let own = self.parse_own_commands()?;
        fs::create_dir_all(&self.scratch).map_err(|error| path_error(&self.scratch, &error))?;
        let mut all_results = Vec::new();
        let mut missing = Vec::new();
        for name in Profile::built_in_names() {
            let profile = Profile::find(name).map_err(|error| error.to_string())?;
            let folder = self.scratch.join(name);
            let results_file = folder.join("standing.json");
            let command = own.get(name);
            if profile.install.is_none() && command.is_none() && !results_file.exists() {
                continue;
            }
            let is_wanted = self.only.is_empty() || self.only.iter().any(|only| only == name);
            if is_wanted && (profile.install.is_some() || command.is_some()) {
                self.update_results(&profile, command, &folder, (&cases, &requirements), say)?;
            }
            if let Ok(text) = fs::read_to_string(&results_file) {
                let results: AgentResults = serde_json::from_str(&text).map_err(|error| {
                    format!("{}; play {name} again", path_error(&results_file, &error))
                })?;
                all_results.push(results);
            } else {
                missing.push(name);
            }
        }
        if self.install_only {
            return Ok(());
        }
        let checked = self.read_manual_checks()?;
        let page = page::render_page(&requirements, &all_results, &missing, &checked, cases.len());
        fs::write(&self.page, page).map_err(|error| path_error(&self.page, &error))?;
        say(&format!("{} is written", self.page.display()));
        Ok(())
    }

    fn update_results(
        &self,
        profile: &Profile,
        command: Option<&Vec<String>>,
        folder: &Path,
        (cases, requirements): (&[Case], &Requirements),
        say: &(dyn Fn(&str) + Sync),
    ) -> Result<(), String> {
        fs::create_dir_all(folder).map_err(|error| path_error(folder, &error))?;
        let folder = folder
            .canonicalize()
            .map_err(|error| path_error(folder, &error))?;
        let install = match (&profile.install, command) {
            (Some(install), None) => {
                say(&format!("{}: installing", profile.name));
                install::install_agent(install, &folder, &self.python)?;
                Some(folder.clone())
            }
            (_, Some(_)) | (None, None) => None,
        };
        if self.install_only {
            return Ok(());
        }
        say(&format!("{}: playing {} cases", profile.name, cases.len()));
        let agent = AgentSpec {
            command: command.cloned().unwrap_or_default(),
            profile: Some(profile.clone()),
            install_folder: install,
            ..AgentSpec::default()
        };
        let usual = PlayOptions::default();
        let options = PlayOptions {
            patience: Duration::from_secs(self.patience),
            jobs: self.jobs.unwrap_or(usual.jobs),
            real_time: self.real_time,
            ..usual
        };
        let on_outcome = |outcome: &CaseOutcome| {
            let failed = outcome.findings().count();
            let seconds = outcome.elapsed.as_secs();
            say(&format!(
                "{}, {}: {failed} checks failed, {seconds} s",
                profile.name, outcome.case
            ));
        };
        let scratch = folder.parent().unwrap_or(&folder);
        let redactor = PathRedactor::new(scratch).map_err(|error| path_error(scratch, &error))?;
        let results = match play_suite(cases, &agent, &options, None, &on_outcome) {
            Ok(SuiteResult {
                unplayed_reason: Some(why),
                ..
            }) => AgentResults::unplayable(profile, why),
            Ok(mut played) => {
                let flaky = replay_failures(&mut played, cases, &agent, &options, &on_outcome)?;
                let flaky = flaky.iter().map(ToString::to_string);
                let flaky: Vec<String> = flaky.collect();
                AgentResults::from_run(profile, &played, &flaky, requirements, &redactor)
            }
            Err(fault) => AgentResults::unplayable(profile, redactor.redact(&fault)),
        };
        let results_file = folder.join("standing.json");
        let text = serde_json::to_string_pretty(&results)
            .map_err(|error| path_error(&results_file, &error))?;
        fs::write(&results_file, text).map_err(|error| path_error(&results_file, &error))
    }

    fn parse_own_commands(&self) -> Result<BTreeMap<String, Vec<String>>, String> {
        let pairs = self.own.iter().map(|own| {
            let (name, command) = own
                .split_once('=')
                .ok_or_else(|| format!("{own:?} is not PROFILE=COMMAND"))?;
            let words = command.split_whitespace().map(str::to_owned).collect();
            Ok((name.to_owned(), words))
        });
        pairs.collect()
    }

    fn read_manual_checks(&self) -> Result<ManualChecks, String> {
        match fs::read_to_string(&self.checked) {
            Ok(text) => toml::from_str(&text).map_err(|error| path_error(&self.checked, &error)),
            Err(_) => Ok(ManualChecks::default()),
        }
    }
}

fn path_error(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}
