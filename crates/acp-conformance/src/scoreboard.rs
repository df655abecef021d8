//! Scoreboard: installs the agents that profiles know, plays the suite against each, and writes the page
//! that compares them. What it found is kept beside each agent, so that one can be played again alone.

mod install;
mod page;
mod places;
mod standing;

pub use places::Places;
pub use standing::{Found, Standing, Why};

use crate::{
    Agent, Case, Options, Outcome, Played, folder,
    near::unknown,
    play_all,
    profile::Profile,
    replay::replay,
    requirements::{Requirements, Rule},
};
use clap::{Args, builder::RangedU64ValueParser};
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// Install agents, play the suite against each, and write how they stand.
#[derive(Args, Debug)]
pub struct Scoreboard {
    /// The folder that agents are installed into, and where what was found is kept.
    #[arg(long)]
    scratch: PathBuf,
    /// Only these profiles are installed and played; of the others the page says what is kept.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// An agent that is not installed from a registry: its profile, `=`, and its command line.
    #[arg(long, value_name = "PROFILE=COMMAND")]
    own: Vec<String>,
    /// Install and do not play.
    #[arg(long)]
    install_only: bool,
    /// The folder of the cases, if not those that come along are played.
    #[arg(long)]
    cases: Option<PathBuf>,
    /// The page that is written.
    #[arg(long, default_value = "conformance/RESULTS.md")]
    page: PathBuf,
    /// Which failures were checked by hand, and how.
    #[arg(long, default_value = "conformance/checked.toml")]
    checked: PathBuf,
    /// The Python that agents from PyPI are installed with.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// Seconds to wait for a line.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
    /// How many cases are played at once.
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    jobs: Option<usize>,
    /// Measure the bounds of the cases on the real clock. Without this, they are longer while the machine is busy, and
    /// an agent that ends too late is not found.
    #[arg(long)]
    real_time: bool,
}

/// What was checked by hand.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Checked {
    #[serde(default)]
    checked: Vec<Check>,
}

/// Failures of an agent that were checked by hand: they are the agent's and not the suite's.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Check {
    agent: String,
    rules: Vec<String>,
    how: String,
}

impl Check {
    fn is_about(&self, standing: &Standing, rule: &Rule) -> bool {
        self.agent == standing.name && self.rules.contains(&rule.id)
    }
}

impl Scoreboard {
    /// Install, play, write the page. `say` is told of what goes on.
    ///
    /// # Errors
    /// Something is missing, or cannot be installed, read or written.
    pub fn run(&self, say: &(dyn Fn(&str) + Sync)) -> Result<(), String> {
        if let Some(name) = self
            .only
            .iter()
            .find(|name| !Profile::known().any(|it| it == *name))
        {
            return Err(unknown(name, "profile", Profile::known()));
        }
        let requirements = Requirements::known()?;
        let cases = folder::cases(self.cases.as_deref())?;
        let own = self.own()?;
        fs::create_dir_all(&self.scratch).map_err(|error| at(&self.scratch, &error))?;
        let mut standings = Vec::new();
        let mut missing = Vec::new();
        for name in Profile::known() {
            let profile = Profile::find(name).map_err(|error| error.to_string())?;
            let folder = self.scratch.join(name);
            let kept = folder.join("standing.json");
            let command = own.get(name);
            if profile.install.is_none() && command.is_none() && !kept.exists() {
                continue;
            }
            let is_wanted = self.only.is_empty() || self.only.iter().any(|only| only == name);
            if is_wanted && (profile.install.is_some() || command.is_some()) {
                self.agent(&profile, command, &folder, (&cases, &requirements), say)?;
            }
            if let Ok(text) = fs::read_to_string(&kept) {
                let standing: Standing = serde_json::from_str(&text)
                    .map_err(|error| format!("{}; play {name} again", at(&kept, &error)))?;
                standings.push(standing);
            } else {
                missing.push(name);
            }
        }
        if self.install_only {
            return Ok(());
        }
        let checked = self.checked()?;
        let page = page::page(&requirements, &standings, &missing, &checked, cases.len());
        fs::write(&self.page, page).map_err(|error| at(&self.page, &error))?;
        say(&format!("{} is written", self.page.display()));
        Ok(())
    }

    fn agent(
        &self,
        profile: &Profile,
        command: Option<&Vec<String>>,
        folder: &Path,
        (cases, requirements): (&[Case], &Requirements),
        say: &(dyn Fn(&str) + Sync),
    ) -> Result<(), String> {
        fs::create_dir_all(folder).map_err(|error| at(folder, &error))?;
        let folder = folder.canonicalize().map_err(|error| at(folder, &error))?;
        let install = match (&profile.install, command) {
            (Some(install), None) => {
                say(&format!("{}: installing", profile.name));
                install::install(install, &folder, &self.python)?;
                Some(folder.clone())
            }
            (_, Some(_)) | (None, None) => None,
        };
        if self.install_only {
            return Ok(());
        }
        say(&format!("{}: playing {} cases", profile.name, cases.len()));
        let agent = Agent {
            command: command.cloned().unwrap_or_default(),
            profile: Some(profile.clone()),
            install,
            ..Agent::default()
        };
        let usual = Options::default();
        let options = Options {
            patience: Duration::from_secs(self.patience),
            jobs: self.jobs.unwrap_or(usual.jobs),
            real_time: self.real_time,
            ..usual
        };
        let over = |outcome: &Outcome| {
            let failed = outcome.findings().count();
            let seconds = outcome.took.as_secs();
            say(&format!(
                "{}, {}: {failed} checks failed, {seconds} s",
                profile.name, outcome.case
            ));
        };
        let scratch = folder.parent().unwrap_or(&folder);
        let places = Places::new(scratch).map_err(|error| at(scratch, &error))?;
        let standing = match play_all(cases, &agent, &options, None, &over) {
            Ok(Played {
                stopped: Some(why), ..
            }) => Standing::unable(profile, why),
            Ok(mut played) => {
                let flaky = replay(&mut played, cases, &agent, &options, &over)?;
                let once = flaky.iter().map(ToString::to_string);
                let once: Vec<String> = once.collect();
                Standing::of(profile, &played, &once, requirements, &places)
            }
            Err(fault) => Standing::unable(profile, places.hidden(&fault)),
        };
        let kept = folder.join("standing.json");
        let text = serde_json::to_string_pretty(&standing).map_err(|error| at(&kept, &error))?;
        fs::write(&kept, text).map_err(|error| at(&kept, &error))
    }

    fn own(&self) -> Result<BTreeMap<String, Vec<String>>, String> {
        let pairs = self.own.iter().map(|own| {
            let (name, command) = own
                .split_once('=')
                .ok_or_else(|| format!("{own:?} is not PROFILE=COMMAND"))?;
            let words = command.split_whitespace().map(str::to_owned).collect();
            Ok((name.to_owned(), words))
        });
        pairs.collect()
    }

    fn checked(&self) -> Result<Checked, String> {
        match fs::read_to_string(&self.checked) {
            Ok(text) => toml::from_str(&text).map_err(|error| at(&self.checked, &error)),
            Err(_) => Ok(Checked::default()),
        }
    }
}

fn at(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}
