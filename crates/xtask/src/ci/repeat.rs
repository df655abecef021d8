//! Runs the steps repeatedly and tabulates the results.

use super::{options::CiOptions, report::RunReport, run_steps};
use anyhow::{Result, ensure};
use std::fmt::Write as _;

/// Runs the steps `options.times` times, even after failures, and prints a line for each run.
pub(super) fn run(options: &CiOptions) -> Result<()> {
    let mut reports = Vec::new();
    for number in 1..=options.times {
        println!("==== run {number} of {}", options.times);
        let report = run_steps(&options.steps);
        println!("{report}");
        if let Some(error) = &report.error {
            println!("== {error:#}");
        }
        reports.push(report);
    }
    println!("{}", table(&reports, options.busy_loops));
    let red = reports.iter().filter(|report| report.error.is_some());
    let red = red.count();
    ensure!(red == 0, "{red} of {} runs failed", reports.len());
    Ok(())
}

fn table(reports: &[RunReport], busy_loops: usize) -> String {
    let mut text = format!(
        "==== {} runs, {busy_loops} busy loops beside\n",
        reports.len()
    );
    for (index, report) in reports.iter().enumerate() {
        let flaky: Vec<String> = report.flaky().collect();
        let result = match (&report.error, flaky.is_empty()) {
            (Some(error), _) => format!("red: {error:#}"),
            (None, true) => "green".to_owned(),
            (None, false) => format!("green, flaky: {}", flaky.join(", ")),
        };
        let took = report.wall_time().as_secs();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:3}  {took:5}s  {result}; {}",
            index + 1,
            report.format_times()
        );
    }
    let count = |is: fn(&RunReport) -> bool| reports.iter().filter(|report| is(report)).count();
    let green = count(|report| report.error.is_none());
    let flaky = count(|report| report.flaky().next().is_some());
    let _ = write!(text, "{green} of {} green, {flaky} flaky", reports.len());
    text
}

#[cfg(test)]
mod tests {
    use super::{super::report::StepReport, *};
    use std::time::Duration;

    fn report(flaky: &[&str], error: Option<&'static str>) -> RunReport {
        RunReport {
            steps: vec![StepReport {
                name: "test",
                wall_time: Duration::from_secs(9),
                cpu_time: None,
                flaky: flaky.iter().map(|&name| name.to_owned()).collect(),
            }],
            error: error.map(anyhow::Error::msg),
        }
    }

    #[test]
    fn each_run_is_a_line() {
        let reports = [
            report(&[], None),
            report(&["a", "b"], None),
            report(&[], Some("why")),
        ];
        let expected = "\
==== 3 runs, 8 busy loops beside
  1      9s  green; test 9s
  2      9s  green, flaky: test (a), test (b); test 9s
  3      9s  red: why; test 9s
2 of 3 green, 1 flaky";
        assert_eq!(table(&reports, 8), expected);
    }
}
