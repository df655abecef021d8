//! Metrics of model calls: tokens and durations.

use super::conventions::{TOKEN_TYPE, input_tokens};
use opentelemetry::{
    KeyValue,
    metrics::{Histogram, Meter},
};
use std::time::Duration;
use turnery_engine::Usage;

/// Bucket boundaries that the conventions ask for. Unit: seconds.
const SECONDS: [f64; 14] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
/// Bucket boundaries that the conventions ask for. Unit: tokens.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// Instruments of model calls.
pub(super) struct CallMetrics {
    duration: Histogram<f64>,
    tokens: Histogram<u64>,
}

impl CallMetrics {
    pub(super) fn new(meter: &Meter) -> Self {
        Self {
            duration: meter
                .f64_histogram("gen_ai.client.operation.duration")
                .with_unit("s")
                .with_description("GenAI operation duration.")
                .with_boundaries(SECONDS.to_vec())
                .build(),
            tokens: meter
                .u64_histogram("gen_ai.client.token.usage")
                .with_unit("{token}")
                .with_description("Number of input and output tokens used.")
                .with_boundaries(TOKENS.to_vec())
                .build(),
        }
    }

    /// Records a finished call. `error` is the attribute with the type of its error.
    pub(super) fn record(
        &self,
        duration: Duration,
        usage: Option<&Usage>,
        mut attributes: Vec<KeyValue>,
        error: Option<KeyValue>,
    ) {
        if let Some(usage) = usage {
            for (kind, count) in [("input", input_tokens(usage)), ("output", usage.output)] {
                attributes.push(KeyValue::new(TOKEN_TYPE, kind));
                self.tokens.record(count, &attributes);
                attributes.pop();
            }
        }
        attributes.extend(error);
        self.duration.record(duration.as_secs_f64(), &attributes);
    }
}
