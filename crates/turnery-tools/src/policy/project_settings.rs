//! Applies a project's own settings, which can only restrict the policy, because they come with the code that
//! the agent works on.

use super::{Mode, Policy, Rule};
use std::fmt;

/// Policy settings of a project.
#[derive(Clone, Debug, Default)]
pub struct ProjectPolicySettings {
    /// Requested mode.
    pub mode: Option<Mode>,
    /// Allow rules, which are ignored and reported.
    pub allow: Vec<Rule>,
    /// Deny rules.
    pub deny: Vec<Rule>,
}

/// Project setting that was ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IgnoredProjectSetting {
    /// Mode that is more permissive than the user's.
    Mode {
        /// Mode that the project requests.
        requested: Mode,
        /// Mode that stays in force.
        in_force: Mode,
    },
    /// Allow rule.
    Allow(Rule),
}

impl fmt::Display for IgnoredProjectSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mode {
                requested,
                in_force,
            } => write!(
                f,
                "the project's mode {requested} is ignored, since it is freer than {in_force}: set it in your own configuration"
            ),
            Self::Allow(rule) => write!(
                f,
                "the project's rule {rule} is ignored, since a project may only deny: allow it in your own configuration"
            ),
        }
    }
}

impl Policy {
    /// Returns this policy restricted by the project's settings, and the settings that were ignored.
    #[must_use]
    pub fn with_project_settings(
        &self,
        project: ProjectPolicySettings,
    ) -> (Self, Vec<IgnoredProjectSetting>) {
        let mut policy = self.clone();
        let mut ignored = Vec::new();
        if let Some(requested) = project.mode {
            if requested.is_more_permissive_than(self.mode) {
                let in_force = self.mode;
                ignored.push(IgnoredProjectSetting::Mode {
                    requested,
                    in_force,
                });
            } else {
                policy.mode = requested;
            }
        }
        ignored.extend(project.allow.into_iter().map(IgnoredProjectSetting::Allow));
        for rule in project.deny {
            policy.add_deny_rule(rule);
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
    fn project_settings_can_only_narrow() {
        let user = Policy::new(Mode::Ask, vec![rule("shell(cargo test:*)")], vec![]);
        let (policy, ignored) = user.with_project_settings(ProjectPolicySettings {
            mode: Some(Mode::Auto),
            allow: vec![rule("shell")],
            deny: vec![rule("read(**/.env)")],
        });
        assert_eq!(policy.mode, Mode::Ask);
        assert_eq!(policy.allow_rules(), [rule("shell(cargo test:*)")]);
        assert_eq!(policy.deny_rules(), [rule("read(**/.env)")]);
        let messages: Vec<String> = ignored.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "the project's mode auto is ignored, since it is freer than ask: set it in your own configuration",
                "the project's rule shell is ignored, since a project may only deny: allow it in your own configuration",
            ]
        );
    }

    #[test]
    fn stricter_project_mode_is_applied() {
        let user = Policy::new(Mode::Auto, vec![], vec![]);
        for mode in [Mode::Plan, Mode::Ask, Mode::Edit, Mode::Auto] {
            let (policy, ignored) = user.with_project_settings(ProjectPolicySettings {
                mode: Some(mode),
                ..ProjectPolicySettings::default()
            });
            assert_eq!((policy.mode, ignored), (mode, vec![]));
        }
    }
}
