//! Report of a run: the time of each step, flaky parts, and the failure.

use super::Retries;
use std::{
    fmt, fs,
    time::{Duration, Instant},
};

/// Results of one run of the steps.
#[derive(Debug, Default)]
pub(super) struct RunReport {
    pub(super) steps: Vec<StepReport>,
    /// Error of the last of these steps.
    pub(super) error: Option<anyhow::Error>,
}

/// Times and flaky parts of one step.
#[derive(Debug)]
pub(super) struct StepReport {
    pub(super) name: &'static str,
    pub(super) wall_time: Duration,
    /// CPU time of the step's processes, if known.
    pub(super) cpu_time: Option<Duration>,
    /// Parts that failed first and passed when retried.
    pub(super) flaky: Vec<String>,
}

impl RunReport {
    pub(super) fn add(&mut self, name: &'static str, stopwatch: &Stopwatch, retries: Retries) {
        let (took, cpu_time) = stopwatch.read();
        self.steps.push(StepReport {
            name,
            wall_time: took,
            cpu_time,
            flaky: retries.into_flaky(),
        });
    }

    pub(super) fn wall_time(&self) -> Duration {
        self.steps.iter().map(|step| step.wall_time).sum()
    }

    /// Returns each flaky part, prefixed with its step.
    pub(super) fn flaky(&self) -> impl Iterator<Item = String> {
        self.steps.iter().flat_map(|step| {
            let flaky = step.flaky.iter();
            flaky.map(|flaky| format!("{} ({flaky})", step.name))
        })
    }

    /// Renders the steps with their times in one line.
    pub(super) fn format_times(&self) -> String {
        let times = self.steps.iter().map(|step| {
            let cpu_time = step
                .cpu_time
                .map(|cpu_time| format!(" (cpu {}s)", cpu_time.as_secs()));
            let (name, took) = (step.name, step.wall_time.as_secs());
            format!("{name} {took}s{}", cpu_time.unwrap_or_default())
        });
        times.collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for flaky in self.flaky() {
            writeln!(f, "== flaky: {flaky}; passed when it was run again")?;
        }
        let result = match self.error {
            None => "all passed",
            Some(_) => "failed",
        };
        let took = self.wall_time().as_secs();
        write!(f, "== {result} in {took}s: {}", self.format_times())
    }
}

/// Measures wall-clock time, and the CPU time of child processes.
pub(super) struct Stopwatch {
    started: Instant,
    cpu_time: Option<Duration>,
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        Self {
            started: Instant::now(),
            cpu_time: children_cpu_time(),
        }
    }

    fn read(&self) -> (Duration, Option<Duration>) {
        let cpu_time = children_cpu_time()
            .zip(self.cpu_time)
            .map(|(now, before)| now.saturating_sub(before));
        (self.started.elapsed(), cpu_time)
    }
}

/// Returns the CPU time of all reaped child processes; only on Linux.
fn children_cpu_time() -> Option<Duration> {
    /// Unit of time in `/proc/PID/stat`: a hundredth of a second on every Linux.
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<u32>().ok();
    // `cutime` and `cstime`.
    Some(TICK * (ticks(13)? + ticks(14)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flaky_parts_are_named_in_a_green_run() {
        let report = RunReport {
            steps: vec![StepReport {
                name: "test",
                wall_time: Duration::from_secs(61),
                cpu_time: Some(Duration::from_secs(100)),
                flaky: vec!["a::b".to_owned()],
            }],
            error: None,
        };
        assert_eq!(
            report.to_string(),
            "== flaky: test (a::b); passed when it was run again\n\
             == all passed in 61s: test 61s (cpu 100s)"
        );
    }

    #[test]
    fn a_failed_run_says_so() {
        let report = RunReport {
            steps: Vec::new(),
            error: Some(anyhow::anyhow!("no")),
        };
        assert_eq!(report.to_string(), "== failed in 0s: ");
    }
}
