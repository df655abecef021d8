//! Narrow: a project's own settings may only take freedom away, since they come with the code
//! that the agent is to work on.

use super::{Mode, Policy, Rule};
use std::fmt;

/// What a project asks for.
#[derive(Clone, Debug, Default)]
pub struct Narrowing {
    /// Its mode.
    pub mode: Option<Mode>,
    /// Its rules that allow.
    pub allow: Vec<Rule>,
    /// Its rules that deny.
    pub deny: Vec<Rule>,
}

/// Something a project asked for and did not get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// A mode that is freer than the user's.
    Mode {
        /// What the project wants.
        wanted: Mode,
        /// What holds instead.
        kept: Mode,
    },
    /// A rule that allows.
    Allow(Rule),
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mode { wanted, kept } => write!(
                f,
                "the project's mode {wanted} is ignored, since it is freer than {kept}: set it in your own configuration"
            ),
            Self::Allow(rule) => write!(
                f,
                "the project's rule {rule} is ignored, since a project may only deny: allow it in your own configuration"
            ),
        }
    }
}

impl Policy {
    /// This policy, narrowed by what a project asks for; and what of that was ignored.
    #[must_use]
    pub fn narrowed(&self, project: Narrowing) -> (Self, Vec<Ignored>) {
        let mut policy = self.clone();
        let mut ignored = Vec::new();
        if let Some(wanted) = project.mode {
            if wanted.is_freer_than(self.mode) {
                let kept = self.mode;
                ignored.push(Ignored::Mode { wanted, kept });
            } else {
                policy.mode = wanted;
            }
        }
        ignored.extend(project.allow.into_iter().map(Ignored::Allow));
        for rule in project.deny {
            policy.deny(rule);
        }
        (policy, ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Rule {
        text.parse().unwrap()
    }

    #[test]
    fn a_project_can_only_narrow() {
        let user = Policy::new(Mode::Ask, vec![rule("shell(cargo test:*)")], vec![]);
        let (policy, ignored) = user.narrowed(Narrowing {
            mode: Some(Mode::Auto),
            allow: vec![rule("shell")],
            deny: vec![rule("read(**/.env)")],
        });
        assert_eq!(policy.mode, Mode::Ask);
        assert_eq!(policy.allowed(), [rule("shell(cargo test:*)")]);
        assert_eq!(policy.denied(), [rule("read(**/.env)")]);
        let told: Vec<String> = ignored.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "the project's mode auto is ignored, since it is freer than ask: set it in your own configuration",
                "the project's rule shell is ignored, since a project may only deny: allow it in your own configuration",
            ]
        );
    }

    #[test]
    fn a_stricter_mode_is_taken() {
        let user = Policy::new(Mode::Auto, vec![], vec![]);
        for mode in [Mode::Plan, Mode::Ask, Mode::Edit, Mode::Auto] {
            let (policy, ignored) = user.narrowed(Narrowing {
                mode: Some(mode),
                ..Narrowing::default()
            });
            assert_eq!((policy.mode, ignored), (mode, vec![]));
        }
    }
}
