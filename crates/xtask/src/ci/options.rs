//! Reads the arguments of `cargo xtask ci`.

use super::check_names;
use anyhow::{Context, Result, bail, ensure};

/// Arguments of `cargo xtask ci`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CiOptions {
    /// Names of the steps to run; all if empty.
    pub(super) steps: Vec<String>,
    /// Number of runs.
    pub(super) times: usize,
    /// Number of busy loops that run at the same time.
    pub(super) busy_loops: usize,
}

impl CiOptions {
    pub(super) fn parse(args: &[String]) -> Result<Self> {
        let mut options = Self {
            steps: Vec::new(),
            times: 1,
            busy_loops: 0,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--times" => options.times = parse_number(arg, args.next())?,
                "--beside" => options.busy_loops = parse_number(arg, args.next())?,
                _ if arg.starts_with('-') => bail!("ci has no option {arg:?}"),
                _ => options.steps.push(arg.clone()),
            }
        }
        ensure!(options.times > 0, "--times must be at least 1");
        check_names(&options.steps)?;
        Ok(options)
    }
}

fn parse_number(option: &str, value: Option<&String>) -> Result<usize> {
    let value = value.with_context(|| format!("{option} needs a number"))?;
    let number = value.parse();
    number.with_context(|| format!("{option} needs a number, not {value:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &str) -> Result<CiOptions> {
        let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
        CiOptions::parse(&args)
    }

    #[test]
    fn options_may_stand_anywhere() {
        let expected = CiOptions {
            steps: vec!["fmt".to_owned(), "test".to_owned()],
            times: 10,
            busy_loops: 8,
        };
        assert_eq!(parse("fmt --times 10 test --beside 8").unwrap(), expected);
        assert_eq!(parse("").unwrap().times, 1);
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (args, why) in [
            ("nonsense", "there is no step \"nonsense\""),
            ("--times", "--times needs a number"),
            ("--beside x", "--beside needs a number, not \"x\""),
            ("--times 0", "--times must be at least 1"),
            ("--loud", "ci has no option \"--loud\""),
        ] {
            let error = parse(args).unwrap_err().to_string();
            assert!(error.starts_with(why), "{args}: {error}");
        }
    }
}
