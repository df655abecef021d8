//! Retry: when a failed attempt is made again, and how long to wait before it (UP-8).
//!
//! Whether a fragment was already sent is not asked here: the caller stops retrying then (R9).

use std::{hash::BuildHasher, time::Duration};
use turnery_engine::{FaultKind, ModelFault};

/// How often and how patiently a failed call is made again.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts after the first.
    pub retries: u32,
    /// The wait before the first retry.
    pub initial: Duration,
    /// Each wait is this many times the one before.
    pub factor: u32,
    /// No wait of our own is longer.
    pub cap: Duration,
    /// Each wait is longer or shorter by up to this part of it.
    pub jitter: f64,
    /// A provider may ask for a wait up to this; a longer one ends the call.
    pub patience: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 3,
            initial: Duration::from_secs(1),
            factor: 2,
            cap: Duration::from_secs(30),
            jitter: 0.2,
            patience: Duration::from_secs(60),
        }
    }
}

/// A failed attempt.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) fault: ModelFault,
    /// The provider's own word on whether to try again (`x-should-retry`).
    pub(crate) should_retry: Option<bool>,
}

impl From<ModelFault> for Failure {
    fn from(fault: ModelFault) -> Self {
        Self {
            fault,
            should_retry: None,
        }
    }
}

impl RetryPolicy {
    /// How long to wait before retry number `retry` (from 0), or the fault that ends the call.
    pub(crate) fn after(&self, retry: u32, failure: Failure) -> Result<Duration, ModelFault> {
        let Failure {
            mut fault,
            should_retry,
        } = failure;
        if !should_retry.unwrap_or_else(|| worth_it(fault.kind)) {
            return Err(fault);
        }
        if let Some(wait) = fault.retry_after.filter(|wait| *wait > self.patience) {
            fault.message = format!(
                "{} It asks to wait {} seconds: try again after that, or choose another model.",
                fault.message,
                wait.as_secs()
            );
            return Err(fault);
        }
        if retry >= self.retries {
            if retry > 0 {
                let said = fault.message.trim_end_matches('.');
                fault.message = format!("{said} ({} attempts).", retry + 1);
            }
            return Err(fault);
        }
        Ok(fault
            .retry_after
            .unwrap_or_else(|| self.backoff(retry, chance())))
    }

    /// Our own wait; `chance` lies in 0..1.
    fn backoff(&self, retry: u32, chance: f64) -> Duration {
        let wait = self
            .initial
            .saturating_mul(self.factor.saturating_pow(retry))
            .min(self.cap);
        wait.mul_f64((1.0 + self.jitter * (2.0 * chance - 1.0)).max(0.0))
    }
}

/// A silent provider is not asked again: each attempt would last as long as the silence did.
fn worth_it(kind: FaultKind) -> bool {
    match kind {
        FaultKind::Network
        | FaultKind::Protocol
        | FaultKind::Unfinished
        | FaultKind::RateLimit
        | FaultKind::Overloaded => true,
        FaultKind::Timeout
        | FaultKind::Auth
        | FaultKind::ContextOverflow
        | FaultKind::BadRequest
        | FaultKind::AnswerLimit => false,
    }
}

/// A number in 0..1, from the seeds that the standard library draws for its hash maps.
fn chance() -> f64 {
    let bits = std::hash::RandomState::new().hash_one(0_u8) >> 32;
    f64::from(u32::try_from(bits).unwrap_or(0)) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: FaultKind, retry_after: Option<u64>) -> Failure {
        ModelFault {
            kind,
            message: "It is busy.".to_owned(),
            status: None,
            retry_after: retry_after.map(Duration::from_secs),
        }
        .into()
    }

    // proves: UP-8
    #[test]
    fn waits_double_up_to_the_cap_and_swing_by_a_fifth() {
        let policy = RetryPolicy::default();
        let millis = |retry, chance| policy.backoff(retry, chance).as_millis();
        assert_eq!(millis(0, 0.5), 1000);
        assert_eq!(millis(1, 0.5), 2000);
        assert_eq!(millis(2, 0.5), 4000);
        assert_eq!(millis(9, 0.5), 30_000);
        assert_eq!(millis(40, 0.5), 30_000);
        assert_eq!(millis(0, 0.0), 800);
        assert!((1199..=1200).contains(&millis(0, 0.999_999)));
        for _ in 0..100 {
            assert!((0.0..1.0).contains(&chance()));
        }
    }

    // proves: UP-8
    #[test]
    fn the_provider_says_how_long() {
        let policy = RetryPolicy::default();
        let wait = policy.after(0, fault(FaultKind::RateLimit, Some(7)));
        assert_eq!(wait, Ok(Duration::from_secs(7)));
        let wait = policy.after(0, fault(FaultKind::RateLimit, Some(3600)));
        assert_eq!(
            wait.unwrap_err().message,
            "It is busy. It asks to wait 3600 seconds: try again after that, or choose another model."
        );
    }

    // proves: UP-8
    #[test]
    fn three_retries_then_the_fault() {
        let policy = RetryPolicy::default();
        assert!(policy.after(2, fault(FaultKind::Overloaded, None)).is_ok());
        let end = policy.after(3, fault(FaultKind::Overloaded, None));
        assert_eq!(end.unwrap_err().message, "It is busy (4 attempts).");
    }

    #[test]
    fn what_cannot_succeed_is_not_tried_again_unless_the_provider_says_so() {
        let policy = RetryPolicy::default();
        for kind in [
            FaultKind::Auth,
            FaultKind::BadRequest,
            FaultKind::ContextOverflow,
            FaultKind::Timeout,
        ] {
            assert!(policy.after(0, fault(kind, None)).is_err());
        }
        let mut willing = fault(FaultKind::BadRequest, None);
        willing.should_retry = Some(true);
        assert!(policy.after(0, willing).is_ok());
        let mut unwilling = fault(FaultKind::Overloaded, None);
        unwilling.should_retry = Some(false);
        assert!(policy.after(0, unwilling).is_err());
    }
}
