//! Decides whether a failed attempt is retried, and after which delay (UP-8).
//!
//! The caller stops retrying once a delta was sent (R9).

use std::{hash::BuildHasher, time::Duration};
use turnery_engine::{ModelError, ModelErrorKind};

/// Number and delays of retries.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Number of attempts after the first.
    pub max_retries: u32,
    /// Delay before the first retry.
    pub initial_wait: Duration,
    /// Factor by which each delay exceeds the one before.
    pub factor: u32,
    /// Longest delay computed by turnery, before jitter.
    pub max_wait: Duration,
    /// Fraction by which each delay is randomly shortened or extended.
    pub jitter: f64,
    /// Longest delay that a provider may request; a longer one ends the call.
    pub max_provider_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 3,
            initial_wait: Duration::from_secs(1),
            factor: 2,
            max_wait: Duration::from_secs(30),
            jitter: 0.2,
            max_provider_wait: Duration::from_secs(60),
        }
    }
}

/// A failed attempt.
#[derive(Debug)]
pub(crate) struct AttemptError {
    pub(crate) error: ModelError,
    /// The provider's statement on retries (`x-should-retry`).
    pub(crate) should_retry: Option<bool>,
}

impl From<ModelError> for AttemptError {
    fn from(error: ModelError) -> Self {
        Self {
            error,
            should_retry: None,
        }
    }
}

impl RetryPolicy {
    /// Returns the delay before retry number `retry` (from 0), or the error that ends the call.
    pub(crate) fn wait_before(
        &self,
        retry: u32,
        failure: AttemptError,
    ) -> Result<Duration, ModelError> {
        let AttemptError {
            mut error,
            should_retry,
        } = failure;
        if !should_retry.unwrap_or_else(|| is_retryable(error.kind)) {
            return Err(error);
        }
        if let Some(wait) = error
            .retry_after
            .filter(|wait| *wait > self.max_provider_wait)
        {
            error.message = format!(
                "{} It asks to wait {} seconds: try again after that, or choose another model.",
                error.message,
                wait.as_secs()
            );
            return Err(error);
        }
        if retry >= self.max_retries {
            if retry > 0 {
                let message = error.message.trim_end_matches('.');
                error.message = format!("{message} ({} attempts).", retry + 1);
            }
            return Err(error);
        }
        Ok(error
            .retry_after
            // A delay that is over already is no statement on when to call again.
            .filter(|wait| !wait.is_zero())
            .unwrap_or_else(|| self.backoff(retry, random_fraction())))
    }

    /// Returns the delay without a request of the provider; `random_fraction` lies in 0..1.
    fn backoff(&self, retry: u32, random_fraction: f64) -> Duration {
        let wait = self
            .initial_wait
            .saturating_mul(self.factor.saturating_pow(retry))
            .min(self.max_wait);
        wait.mul_f64((1.0 + self.jitter * (2.0 * random_fraction - 1.0)).max(0.0))
    }
}

/// Returns true if errors of this kind are retried. Timeouts are not: each attempt would take as long again.
fn is_retryable(kind: ModelErrorKind) -> bool {
    match kind {
        ModelErrorKind::Network
        | ModelErrorKind::Protocol
        | ModelErrorKind::Unfinished
        | ModelErrorKind::RateLimit
        | ModelErrorKind::Overloaded => true,
        ModelErrorKind::Timeout
        | ModelErrorKind::Auth
        | ModelErrorKind::ContextOverflow
        | ModelErrorKind::BadRequest
        | ModelErrorKind::AnswerLimit => false,
    }
}

/// Returns a number in 0..1, from the random seeds of the standard library's hash maps.
fn random_fraction() -> f64 {
    let bits = std::hash::RandomState::new().hash_one(0_u8) >> 32;
    f64::from(u32::try_from(bits).unwrap_or(0)) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt_error(kind: ModelErrorKind, retry_after: Option<u64>) -> AttemptError {
        ModelError {
            retry_after: retry_after.map(Duration::from_secs),
            ..ModelError::new(kind, "It is busy.")
        }
        .into()
    }

    // proves: UP-8
    #[test]
    fn backoff_doubles_up_to_the_cap_with_jitter() {
        let policy = RetryPolicy::default();
        let millis = |retry, random_fraction| policy.backoff(retry, random_fraction).as_millis();
        assert_eq!(millis(0, 0.5), 1000);
        assert_eq!(millis(1, 0.5), 2000);
        assert_eq!(millis(2, 0.5), 4000);
        assert_eq!(millis(9, 0.5), 30_000);
        assert_eq!(millis(40, 0.5), 30_000);
        assert_eq!(millis(0, 0.0), 800);
        assert!((1199..=1200).contains(&millis(0, 0.999_999)));
        for _ in 0..100 {
            assert!((0.0..1.0).contains(&random_fraction()));
        }
    }

    // proves: UP-8
    #[test]
    fn provider_wait_is_used_up_to_the_limit() {
        let policy = RetryPolicy::default();
        let wait = policy.wait_before(0, attempt_error(ModelErrorKind::RateLimit, Some(7)));
        assert_eq!(wait, Ok(Duration::from_secs(7)));
        // Shorter than the backoff, too.
        let wait = policy.wait_before(2, attempt_error(ModelErrorKind::RateLimit, Some(1)));
        assert_eq!(wait, Ok(Duration::from_secs(1)));
        // A delay that is over already: as without one.
        let wait = policy.wait_before(0, attempt_error(ModelErrorKind::RateLimit, Some(0)));
        assert!(wait.unwrap() >= Duration::from_millis(800));
        let wait = policy.wait_before(0, attempt_error(ModelErrorKind::RateLimit, Some(3600)));
        assert_eq!(
            wait.unwrap_err().message,
            "It is busy. It asks to wait 3600 seconds: try again after that, or choose another model."
        );
    }

    // proves: UP-8
    #[test]
    fn waits_are_those_of_the_backoff_with_jitter() {
        let policy = RetryPolicy::default();
        for (retry, middle) in [(0, 1000), (1, 2000), (2, 4000)] {
            let waits: Vec<u128> = (0..200)
                .map(|_| policy.wait_before(retry, attempt_error(ModelErrorKind::Network, None)))
                .map(|wait| wait.unwrap().as_millis())
                .collect();
            let range = middle * 8 / 10..=middle * 12 / 10;
            assert!(waits.iter().all(|wait| range.contains(wait)), "{waits:?}");
            assert!(waits.iter().any(|wait| *wait < middle), "{waits:?}");
            assert!(waits.iter().any(|wait| *wait > middle), "{waits:?}");
        }
    }

    // proves: UP-8
    #[test]
    fn three_retries_then_the_error() {
        let policy = RetryPolicy::default();
        assert!(
            policy
                .wait_before(2, attempt_error(ModelErrorKind::Overloaded, None))
                .is_ok()
        );
        let end = policy.wait_before(3, attempt_error(ModelErrorKind::Overloaded, None));
        assert_eq!(end.unwrap_err().message, "It is busy (4 attempts).");
    }

    // proves: UP-8
    #[test]
    fn permanent_error_is_retried_only_if_provider_says_so() {
        let policy = RetryPolicy::default();
        for kind in [
            ModelErrorKind::Auth,
            ModelErrorKind::BadRequest,
            ModelErrorKind::ContextOverflow,
            ModelErrorKind::Timeout,
        ] {
            assert!(policy.wait_before(0, attempt_error(kind, None)).is_err());
        }
        let mut willing = attempt_error(ModelErrorKind::BadRequest, None);
        willing.should_retry = Some(true);
        assert!(policy.wait_before(0, willing).is_ok());
        let mut unwilling = attempt_error(ModelErrorKind::Overloaded, None);
        unwilling.should_retry = Some(false);
        assert!(policy.wait_before(0, unwilling).is_err());
    }
}
