//! Retries: what fails is run once more, alone, and reported as flaky if it passes then.

use anyhow::Result;

/// Names of the parts of a step that failed first and passed the second time.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    flaky: Vec<String>,
}

impl Retries {
    /// Runs one part of a step, once more if it fails.
    ///
    /// # Errors
    /// It failed twice; the error is that of the second time.
    pub(crate) fn run(&mut self, part: &str, mut action: impl FnMut() -> Result<()>) -> Result<()> {
        let Err(first) = action() else {
            return Ok(());
        };
        println!("== failed: {part}: {first:#}; once more, alone");
        action()?;
        self.record(format!("{part}: {first:#}"));
        Ok(())
    }

    /// Records what failed first and passed when it was run again.
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

    /// Runs a part that fails this often; says how often it was run, whether it passed, and what was flaky.
    fn failing(times: usize) -> (usize, bool, Vec<String>) {
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
    fn a_failure_is_run_once_more_and_not_hidden() {
        assert_eq!(failing(0), (1, true, vec![]));
        assert_eq!(failing(1), (2, true, vec!["part: failure 1".to_owned()]));
        assert_eq!(failing(2), (2, false, vec![]));
    }
}
