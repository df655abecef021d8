//! Retries failed parts of a step once, and records as flaky those that then pass.

use anyhow::Result;

/// Runner of the parts of a step: retries a failed part once, and collects descriptions of those that then
/// pass.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    flaky: Vec<String>,
}

impl Retries {
    /// Runs one part of a step, and retries it once if it fails.
    ///
    /// # Errors
    /// Returns the second error if the part fails twice.
    pub(crate) fn run(&mut self, part: &str, mut action: impl FnMut() -> Result<()>) -> Result<()> {
        let Err(first) = action() else {
            return Ok(());
        };
        println!("== failed: {part}: {first:#}; once more, alone");
        action()?;
        self.record(format!("{part}: {first:#}"));
        Ok(())
    }

    /// Records a part that failed first and passed when retried.
    pub(crate) fn record(&mut self, flaky: String) {
        self.flaky.push(flaky);
    }

    pub(super) fn into_flaky(self) -> Vec<String> {
        self.flaky
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    /// Runs a part that fails `times` times; returns the number of runs, true if it passed, and the flaky parts.
    fn run_failing(times: usize) -> (usize, bool, Vec<String>) {
        let mut runs = 0;
        let mut retries = Retries::default();
        let result = retries.run("part", || {
            runs += 1;
            if runs <= times {
                bail!("failure {runs}");
            }
            Ok(())
        });
        (runs, result.is_ok(), retries.into_flaky())
    }

    #[test]
    fn failure_is_retried_once_and_reported() {
        assert_eq!(run_failing(0), (1, true, vec![]));
        assert_eq!(
            run_failing(1),
            (2, true, vec!["part: failure 1".to_owned()])
        );
        assert_eq!(run_failing(2), (2, false, vec![]));
    }
}
