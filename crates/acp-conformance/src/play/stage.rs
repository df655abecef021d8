//! Stage: where a case is played: its folders, its agent, and all that was said.

use super::{
    Agent, Facts, Miss, Options,
    log::{Log, shown},
    models::holds,
};
use crate::{
    deep,
    model::{FakeModel, Tool},
    oracle::{Ending, Oracle, Violation},
    outcome::{Finding, Kind},
    pace::Pace,
    pattern::{Captures, fill_text},
    peer::{
        client::Client,
        process::{LONGEST_LINE, Logs, Process, beginning, end, marked},
        queue::Spoken,
        terminals::Place,
    },
    scratch::Scratch,
};
use rustix::process::Pid;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// How long an agent whose output is over may take to end: so that it is known how it ended.
const ENDING: Duration = Duration::from_millis(500);

/// Where a case is played.
pub(super) struct Stage<'a> {
    /// If the agent has a profile.
    pub(super) fake: Option<FakeModel>,
    /// Requests to the model before the agent was started.
    pub(super) asked_before: usize,
    /// What the agent has turned out to have no tool for.
    pub(super) lacking: BTreeSet<Tool>,
    /// `authenticate` was sent, if the profile wants it.
    pub(super) is_logged_in: bool,
    pub(super) agent: &'a Agent,
    pub(super) options: &'a Options,
    pub(super) begun: Instant,
    /// Goes with the stage.
    _top: TempDir,
    _scratch: Arc<Scratch>,
    /// Names all processes of the case.
    pub(super) mark_of_processes: String,
    pub(super) vars: Captures,
    /// What `file` made.
    pub(super) made: BTreeMap<PathBuf, String>,
    pub(super) process: Option<Process>,
    /// Those that have ended, with what they left behind.
    pub(super) ended: Vec<Process>,
    /// What they had left alive when the present one was started.
    pub(super) left: Vec<Pid>,
    pub(super) reads_stderr: bool,
    pub(super) logs: Logs,
    pub(super) client: Client,
    pub(super) log: Log,
    /// What the agent said.
    pub(super) heard: Vec<Heard>,
    /// How many of these have been read.
    pub(super) read: usize,
    /// From where on they are looked through.
    pub(super) mark: usize,
    /// The requests of the case, by name.
    pub(super) asked: BTreeMap<String, Asked>,
    pub(super) next_id: u64,
    /// What goes out with the next write.
    pub(super) held: Vec<u8>,
    pub(super) split: Option<usize>,
    pub(super) version: u16,
    pub(super) capabilities: Value,
    /// Of the step.
    pub(super) patience: Duration,
    /// When it is over, on the clock of `pace()`. An agent that talks without end does not put it off.
    pub(super) deadline: Duration,
    pub(super) looks_again: bool,
    /// A check has failed.
    pub(super) is_hurt: bool,
    /// The line of the case that is played.
    pub(super) at: usize,
    pub(super) oracle: Oracle,
    /// What the oracle found.
    pub(super) violations: Vec<(&'static str, Finding)>,
    /// The rules of which it saw something.
    pub(super) seen: BTreeSet<&'static str>,
    /// What was sent of a line that has no end yet.
    pub(super) begun_line: Vec<u8>,
    /// The agent was told to end, or we do not listen any more.
    pub(super) is_forced: bool,
    /// The agent's output has ended.
    pub(super) is_silent: bool,
    /// How it ended, in words, though nobody had told it to.
    pub(super) ending: Option<String>,
    /// The first way in which an agent of this case ended so.
    pub(super) died: Option<String>,
}

/// A line of the agent.
pub(super) struct Heard {
    /// What it says; `null` if it is no JSON.
    pub(super) value: Value,
    /// As it came. Cut if it is very long.
    pub(super) text: String,
    /// Where it is in the transcript.
    pub(super) entry: usize,
    /// It has the wrong shape, and some rule is blamed for that.
    pub(super) is_bent: bool,
}

/// A request of the case.
pub(super) struct Asked {
    pub(super) id: Value,
    pub(super) method: String,
    /// How many lines had been heard before.
    pub(super) from: usize,
}

/// Why there is no line.
pub(super) enum Silence {
    /// Nothing came in time.
    Patience,
    /// The agent has closed its stdout.
    Ended,
    /// No agent has been started.
    NotStarted,
}

impl<'a> Stage<'a> {
    pub(super) async fn new(
        agent: &'a Agent,
        options: &'a Options,
        facts: &Facts,
    ) -> Result<Self, String> {
        let no_folder = |error: std::io::Error| format!("no folder for a case: {error}");
        let scratch = Scratch::present().map_err(no_folder)?;
        let top = scratch.case().map_err(no_folder)?;
        let path = top.path().canonicalize().map_err(no_folder)?;
        for folder in ["home", "project", "tmp"] {
            std::fs::create_dir(path.join(folder)).map_err(no_folder)?;
        }
        let runner = std::env::current_exe().unwrap_or_default();
        let vars = [
            ("TOP", path.clone()),
            ("HOME", path.join("home")),
            ("CWD", path.join("project")),
            ("RUNNER", runner),
        ];
        let vars = vars.map(|(name, path)| (name.to_owned(), path.display().to_string().into()));
        let mut vars: Captures = vars.into_iter().collect();
        let fake = match &agent.profile {
            None => None,
            Some(profile) => {
                let mut rules = profile.rules();
                rules.offers_tools &= !facts.offers_no_tools;
                let fake = FakeModel::start(rules).await;
                Some(fake.map_err(|error| format!("no fake model: {error}"))?)
            }
        };
        if let Some(fake) = &fake {
            vars.insert("MODEL".to_owned(), fake.base().into());
        }
        if let Some(profile) = &agent.profile {
            let keyless = profile.keyless.as_ref();
            let named = [
                ("LOGIN", profile.authenticate.as_ref()),
                ("INSTRUCTIONS", profile.instructions.as_ref()),
                ("PAGE", keyless.and_then(|keyless| keyless.page.as_ref())),
            ];
            for (name, value) in named {
                let value = value.map(|value| (name.to_owned(), value.as_str().into()));
                vars.extend(value);
            }
        }
        let mut client = Client::default();
        client.terminals.place = Place {
            home: path.join("home"),
            cwd: path.join("project"),
            mark: path.display().to_string(),
        };
        Ok(Self {
            fake,
            asked_before: 0,
            lacking: BTreeSet::new(),
            is_logged_in: false,
            agent,
            options,
            begun: Instant::now(),
            mark_of_processes: path.display().to_string(),
            _top: top,
            _scratch: scratch,
            vars,
            made: BTreeMap::new(),
            process: None,
            ended: Vec::new(),
            left: Vec::new(),
            reads_stderr: true,
            logs: Logs::default(),
            client,
            log: Log::default(),
            heard: Vec::new(),
            read: 0,
            mark: 0,
            asked: BTreeMap::new(),
            next_id: 100,
            held: Vec::new(),
            split: None,
            version: 1,
            capabilities: Value::Object(serde_json::Map::default()),
            patience: options.patience,
            deadline: options.pace().now(),
            looks_again: false,
            is_hurt: false,
            at: 0,
            oracle: Oracle::default(),
            violations: Vec::new(),
            seen: BTreeSet::new(),
            begun_line: Vec::new(),
            is_forced: false,
            is_silent: false,
            ending: None,
            died: None,
        })
    }

    /// The clock of all bounds.
    pub(super) fn pace(&self) -> Pace {
        self.options.pace()
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        self.vars.insert(name.to_owned(), value);
    }

    /// A path of the case: from the folder of the session on.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        let name = fill_text(name, &self.vars);
        self.folder_of("CWD").join(name)
    }

    pub(super) fn folder_of(&self, name: &str) -> &Path {
        Path::new(self.vars.get(name).and_then(Value::as_str).unwrap_or(""))
    }

    pub(super) fn is_prompt(&self, name: &str) -> bool {
        let asked = self.asked.get(name);
        asked.is_some_and(|asked| asked.method == "session/prompt")
    }

    pub(super) fn stderr(&self) -> String {
        let logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&logs).into_owned()
    }

    /// The next line of the agent that nobody has read, by its number.
    pub(super) async fn next(&mut self) -> Result<usize, Silence> {
        while self.read == self.heard.len() {
            self.hear(self.deadline).await?;
        }
        self.read += 1;
        Ok(self.read - 1)
    }

    /// Take in one more line.
    pub(super) async fn hear(&mut self, deadline: Duration) -> Result<(), Silence> {
        let pace = self.pace();
        let process = self.process.as_mut().ok_or(Silence::NotStarted)?;
        let spoken = tokio::select! {
            biased;
            spoken = process.line() => match spoken {
                Some(spoken) => spoken,
                None => {
                    self.is_silent = true;
                    self.note_end().await;
                    return Err(Silence::Ended);
                }
            },
            reply = self.client.later() => {
                self.reply(&reply).await;
                return Ok(());
            }
            () = pace.sleep_until(deadline) => return Err(Silence::Patience),
        };
        match spoken {
            Spoken::Line(line) => self.take_in(&line).await,
            Spoken::TooLong(beginning) => self.take_in_beginning(&beginning),
        }
        Ok(())
    }

    /// The agent seems to be gone, though nobody has told it to go: how it ended.
    pub(super) async fn note_end(&mut self) {
        let pace = self.pace();
        let is_asked = self.is_forced || self.ending.is_some();
        let Some(process) = self
            .process
            .as_mut()
            .filter(|process| process.is_open() && !is_asked)
        else {
            return;
        };
        let ending = match pace.timeout(ENDING, process.ended()).await {
            Some(Ok(status)) => {
                self.died.get_or_insert_with(|| status.to_string());
                format!("the agent ended: {status}")
            }
            Some(Err(_)) | None => "the agent closed its output".to_owned(),
        };
        self.log.note(&ending);
        self.ending = Some(ending);
    }

    async fn take_in(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned();
        let value = deep::read(line).unwrap_or_default();
        let entry = self.log.add(Kind::Came, &text);
        let violations = self.oracle.heard(line);
        self.violated(violations, Some((&text, entry)));
        if value.get("method").is_none() {
            self.log.answered(&value["id"]);
        }
        let replies = self.client.asked(&value);
        let is_bent = self.oracle.is_bent();
        self.heard.push(Heard {
            value,
            text: shown(&text),
            entry,
            is_bent,
        });
        for reply in replies {
            self.reply(&reply).await;
        }
    }

    /// Nobody can know what it says, and no client would have read it.
    fn take_in_beginning(&mut self, beginning: &[u8]) {
        let text = format!("{}…", String::from_utf8_lossy(beginning));
        let entry = self.log.add(Kind::Came, &text);
        let why = format!("a line of more than {} MiB", LONGEST_LINE >> 20);
        let violation = Violation { rule: "TR-9", why };
        self.violated(vec![violation], Some((&text, entry)));
        self.heard.push(Heard {
            value: Value::Null,
            text,
            entry,
            is_bent: true,
        });
    }

    /// Rules are broken, if any, by this line if it is one.
    pub(super) fn violated(&mut self, violations: Vec<Violation>, came: Option<(&str, usize)>) {
        for violation in violations {
            let is_known = self
                .violations
                .iter()
                .any(|(rule, _)| *rule == violation.rule);
            // Once for each rule: what follows from it would hide the rest.
            if is_known {
                continue;
            }
            let finding = Finding {
                line: self.at,
                step: "(always watched)".to_owned(),
                sent: self.sent(),
                came: came.map(|(text, _)| shown(text)),
                why: violation.why,
                entry: came.map(|(_, entry)| entry),
            };
            self.violations.push((violation.rule, finding));
        }
    }

    /// The agent's output has ended: what it owed, and what was seen of it.
    pub(super) fn judge_end(&mut self, ending: Ending) {
        let violations = self.oracle.ended(ending);
        self.violated(violations, None);
        self.keep_seen();
        self.oracle = Oracle::default();
        self.begun_line.clear();
    }

    fn keep_seen(&mut self) {
        self.seen.extend(self.oracle.seen());
    }

    /// These bytes go to the agent: what its peers must know of it.
    pub(super) fn told(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(line) => {
                    self.begun_line.extend_from_slice(line);
                    self.told_line();
                }
                None => self.begun_line.extend_from_slice(piece),
            }
        }
    }

    /// A line is whole.
    pub(super) fn told_line(&mut self) {
        let line = std::mem::take(&mut self.begun_line);
        self.told_message(&serde_json::from_slice(&line).unwrap_or_default());
    }

    /// Tells the peers of the agent about a whole line, parsed; `null` if it is no JSON.
    pub(super) fn told_message(&mut self, message: &Value) {
        self.oracle.sent_message(message);
        if let Some(fake) = &self.fake
            && message["method"] == "session/prompt"
        {
            fake.prompted(|text| holds(&message["params"]["prompt"], text));
        }
        self.client.said(message);
    }

    /// Answer the agent as the client.
    pub(super) async fn reply(&mut self, reply: &Value) {
        let text = reply.to_string();
        self.log.add(Kind::Answered, &text);
        self.oracle.sent(&text);
        // An agent that does not read any more is found out by what it owes.
        let _ = self.write(format!("{text}\n").into_bytes()).await;
    }

    /// What was sent before something was wrong: if the agent is gone, what it went at.
    pub(super) fn sent(&self) -> Option<String> {
        match self.ending {
            None => self.log.last_sent(),
            Some(_) => self.log.unanswered(),
        }
    }

    /// What a step says that got no line.
    pub(super) fn silence(&self, silence: &Silence) -> Miss {
        Miss::Nothing(match silence {
            Silence::Patience => {
                format!("nothing fitting came in {} ms", self.patience.as_millis())
            }
            Silence::Ended => {
                let ending = self.ending.as_deref();
                ending.unwrap_or("the agent ended its output").to_owned()
            }
            Silence::NotStarted => return Miss::Fault("no agent has been started".to_owned()),
        })
    }

    /// Do a check again and again, if the step has a patience of its own.
    pub(super) async fn again(
        &mut self,
        check: impl Fn(&Self) -> Result<(), Miss>,
    ) -> Result<(), Miss> {
        const SHORTEST: Duration = Duration::from_millis(5);
        const LONGEST: Duration = Duration::from_millis(40);
        let deadline = self.pace().now() + self.patience;
        let mut pause = SHORTEST;
        loop {
            let result = check(self);
            if result.is_ok() || !self.looks_again || self.pace().now() >= deadline {
                return result;
            }
            // What the agent says meanwhile is taken in, and not read.
            let look = (self.pace().now() + pause).min(deadline);
            pause = (pause * 2).min(LONGEST);
            if self.hear(look).await.is_err() {
                self.pace().sleep_until(look).await;
            }
        }
    }

    /// End all that is left of the case.
    pub(super) async fn clear(&mut self) {
        self.client.clear();
        if let Some(mut process) = self.process.take() {
            if self.is_silent && process.is_open() && !self.is_forced {
                self.judge_end(Ending::Unasked);
            }
            // A child that it left behind may hold its stdout open.
            if self.ending.is_none()
                && process.has_ended()
                && let Ok(status) = process.ended().await
            {
                self.log.note(format!("the agent ended: {status}"));
                if process.is_open() && !self.is_forced {
                    self.died.get_or_insert_with(|| status.to_string());
                }
            }
            process.kill();
            // So that nothing of it is left, not even its entry in the table of processes.
            let _ = process.ended().await;
            self.ended.push(process);
        }
        let loggers: Vec<_> = self.ended.iter_mut().filter_map(Process::logger).collect();
        self.ended.clear();
        self.keep_seen();
        end(&marked(&self.mark_of_processes));
        for logger in loggers {
            // Who cannot be ended may hold it open.
            let _ = self.pace().timeout(ENDING, logger).await;
        }
        // A case that was cut off by a signal says nothing.
        drop(beginning());
    }
}
