//! Reads the `OTEL_*` variables that decide whether telemetry is exported, and how.
//!
//! The exporter itself reads the endpoints and headers, and the SDK the sampler, resource attributes and batch sizes.

use crate::config::environment::EnvLookup;
use hyper::Uri;
use std::{path::PathBuf, time::Duration};

/// Time limit of an export without `OTEL_EXPORTER_OTLP_TIMEOUT`.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Address of the collector without a variable that names one.
const DEFAULT_ENDPOINT: &str = "http://localhost:4318";

/// Values of `OTEL_TRACES_SAMPLER` that the SDK knows.
const SAMPLERS: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

/// Telemetry that the environment asks for.
#[derive(Debug, PartialEq)]
pub(super) struct TelemetrySettings {
    /// True if spans are exported.
    pub(super) has_traces: bool,
    /// True if metrics are exported.
    pub(super) has_metrics: bool,
    /// True if spans carry prompts, answers, arguments and results.
    pub(super) captures_content: bool,
    /// Name of the service; `None` if the variables with resource attributes have one.
    pub(super) service_name: Option<&'static str>,
    /// Time limit of an export.
    pub(super) timeout: Duration,
    /// Addresses of the collector, without the path of a signal.
    pub(super) endpoints: Vec<String>,
    /// File with root certificates (PEM) that are trusted besides those of the system.
    pub(super) ca_file: Option<PathBuf>,
    /// `traceparent` and `tracestate` of the process that started this one.
    pub(super) parent: Vec<(&'static str, String)>,
}

impl TelemetrySettings {
    /// Reads the settings; `None` if no telemetry is asked for. Fails with what is wrong, and where.
    pub(super) fn read(lookup: EnvLookup<'_>) -> Result<Option<Self>, String> {
        if read_choice(lookup, "OTEL_SDK_DISABLED", &["true"], &["false"])? {
            return Ok(None);
        }
        let shared_name = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let shared = lookup(shared_name);
        let mut endpoints = Vec::new();
        let mut reads_signal = |signal: &str| {
            let name = format!("OTEL_{signal}_EXPORTER");
            let own_name = format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT");
            let own = lookup(&own_name);
            let is_asked = match lookup(&name).as_deref() {
                None => own.is_some() || shared.is_some(),
                Some("otlp") => true,
                Some("none") => false,
                Some(other) => {
                    return Err(format!("{name} is {other:?}; use `otlp` or `none`"));
                }
            };
            if is_asked {
                check_protocol(lookup, signal)?;
                endpoints.push(match (own, &shared) {
                    (Some(own), _) => checked_endpoint(&own_name, own)?,
                    (None, Some(shared)) => checked_endpoint(shared_name, shared.clone())?,
                    (None, None) => DEFAULT_ENDPOINT.to_owned(),
                });
            }
            Ok(is_asked)
        };
        let has_traces = reads_signal("TRACES")?;
        let has_metrics = reads_signal("METRICS")?;
        if !has_traces && !has_metrics {
            return Ok(None);
        }
        let sampler = lookup("OTEL_TRACES_SAMPLER");
        if let Some(sampler) = sampler.filter(|it| !SAMPLERS.contains(&it.as_str())) {
            let known = SAMPLERS.join(", ");
            return Err(format!(
                "OTEL_TRACES_SAMPLER is {sampler:?}; use one of {known}"
            ));
        }
        check_headers(lookup)?;
        check_numbers(lookup)?;
        let attributes = lookup("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        let mut attributes = attributes.split(',').filter_map(|it| it.split_once('='));
        let is_named = lookup("OTEL_SERVICE_NAME").is_some()
            || attributes.any(|(name, _)| name.trim() == "service.name");
        Ok(Some(Self {
            has_traces,
            has_metrics,
            captures_content: captures_content(lookup)?,
            service_name: (!is_named).then_some("turnery"),
            timeout: read_timeout(lookup)?,
            endpoints,
            ca_file: lookup("OTEL_EXPORTER_OTLP_CERTIFICATE").map(PathBuf::from),
            parent: [("traceparent", "TRACEPARENT"), ("tracestate", "TRACESTATE")]
                .into_iter()
                .filter_map(|(key, name)| Some((key, lookup(name)?)))
                .collect(),
        }))
    }
}

/// Returns the address if the exporter can use it. The error leaves it out, since it may hold a key.
fn checked_endpoint(name: &str, address: String) -> Result<String, String> {
    let is_usable = |uri: Uri| {
        let (host, authority) = (uri.host()?, uri.authority()?);
        // A port that is too large is none, but is part of the authority.
        let has_valid_port = uri.port().is_some() || authority.as_str().ends_with(host);
        let is_http = ["http", "https"].contains(&uri.scheme_str()?);
        Some(is_http && has_valid_port && !host.is_empty())
    };
    match address.parse().ok().and_then(is_usable) {
        Some(true) => Ok(address),
        Some(false) | None => Err(format!(
            "{name} is not a valid address; use one such as {DEFAULT_ENDPOINT}"
        )),
    }
}

/// Returns true for a value in `on`, false for one in `off` or none, in any case. Fails for others: nothing is sent then.
fn read_choice(
    lookup: EnvLookup<'_>,
    name: &str,
    on: &[&str],
    off: &[&str],
) -> Result<bool, String> {
    let Some(value) = lookup(name) else {
        return Ok(false);
    };
    let fits = |all: &[&str]| all.iter().any(|it| it.eq_ignore_ascii_case(value.trim()));
    match (fits(on), fits(off)) {
        (true, _) => Ok(true),
        (false, true) => Ok(false),
        (false, false) => {
            let known = [on, off].concat().join(", ");
            Err(format!("{name} is {value:?}; use one of {known}"))
        }
    }
}

/// Returns true if content is asked for: with `true`, or with one of the later values that include spans.
fn captures_content(lookup: EnvLookup<'_>) -> Result<bool, String> {
    let name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
    let on = ["true", "span_only", "span_and_event"];
    read_choice(lookup, name, &on, &["false", "event_only", "no_content"])
}

/// Fails if headers are not written as `NAME=VALUE`. The error leaves them out, since they hold keys.
fn check_headers(lookup: EnvLookup<'_>) -> Result<(), String> {
    for signal in ["", "TRACES_", "METRICS_"] {
        let name = format!("OTEL_EXPORTER_OTLP_{signal}HEADERS");
        let headers = lookup(&name).unwrap_or_default();
        let is_wrong = |it: &str| !it.trim().is_empty() && !it.contains('=');
        if headers.split(',').any(is_wrong) {
            return Err(format!(
                "{name} must be NAME=VALUE, several separated by commas"
            ));
        }
    }
    Ok(())
}

/// Fails if a setting that the exporter reads itself is not a number that it accepts.
fn check_numbers(lookup: EnvLookup<'_>) -> Result<(), String> {
    for name in [
        "OTEL_BSP_SCHEDULE_DELAY",
        "OTEL_BSP_MAX_QUEUE_SIZE",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
    ] {
        if let Some(text) = lookup(name).filter(|it| it.trim().parse::<u64>().is_err()) {
            return Err(format!("{name} is {text:?}; use a whole number"));
        }
    }
    let name = "OTEL_TRACES_SAMPLER_ARG";
    let is_ratio = |it: &str| {
        it.trim()
            .parse()
            .is_ok_and(|it: f64| (0.0..=1.0).contains(&it))
    };
    match lookup(name).filter(|it| !is_ratio(it)) {
        Some(text) => Err(format!("{name} is {text:?}; use a number from 0 to 1")),
        None => Ok(()),
    }
}

/// Fails if a protocol other than the supported one is asked for.
fn check_protocol(lookup: EnvLookup<'_>, signal: &str) -> Result<(), String> {
    let names = [
        format!("OTEL_EXPORTER_OTLP_{signal}_PROTOCOL"),
        "OTEL_EXPORTER_OTLP_PROTOCOL".to_owned(),
    ];
    let found = names
        .iter()
        .find_map(|name| Some((name, lookup(name.as_str())?)));
    match found {
        Some((name, protocol)) if protocol != "http/protobuf" => Err(format!(
            "{name} is {protocol:?}; only `http/protobuf` is supported, which collectors take at port 4318"
        )),
        Some(_) | None => Ok(()),
    }
}

fn read_timeout(lookup: EnvLookup<'_>) -> Result<Duration, String> {
    let names = [
        "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
        "OTEL_EXPORTER_OTLP_TIMEOUT",
    ];
    let found = names.iter().find_map(|name| Some((name, lookup(name)?)));
    let Some((name, text)) = found else {
        return Ok(DEFAULT_TIMEOUT);
    };
    match text.trim().parse() {
        Ok(0) | Err(_) => Err(format!(
            "{name} is {text:?}; use a number of milliseconds, such as 10000"
        )),
        Ok(millis) => Ok(Duration::from_millis(millis)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads settings from these variables.
    fn read(variables: &[(&str, &str)]) -> Result<Option<TelemetrySettings>, String> {
        let variables: Vec<(String, String)> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        TelemetrySettings::read(&move |name| {
            let found = variables.iter().find(|(it, _)| it == name);
            found.map(|(_, value)| value.clone())
        })
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");

    #[test]
    fn nothing_is_exported_unless_asked_for() {
        for variables in [
            &[][..],
            &[("OTEL_SERVICE_NAME", "desk")],
            &[("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")],
            &[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")],
            &[("OTEL_TRACES_EXPORTER", "none")],
            &[
                ENDPOINT,
                ("OTEL_TRACES_EXPORTER", "none"),
                ("OTEL_METRICS_EXPORTER", "none"),
            ],
        ] {
            assert_eq!(read(variables), Ok(None), "{variables:?}");
        }
    }

    #[test]
    fn signals_follow_their_variables() {
        for (variables, traces, metrics) in [
            (&[ENDPOINT][..], true, true),
            (&[ENDPOINT, ("OTEL_METRICS_EXPORTER", "none")], true, false),
            (&[("OTEL_TRACES_EXPORTER", "otlp")], true, false),
            (
                &[("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://a/m")],
                false,
                true,
            ),
        ] {
            let settings = read(variables).unwrap().unwrap();
            let found = (settings.has_traces, settings.has_metrics);
            assert_eq!(found, (traces, metrics), "{variables:?}");
        }
    }

    #[test]
    fn defaults_capture_no_content_and_name_turnery() {
        let settings = read(&[ENDPOINT]).unwrap().unwrap();
        assert!(!settings.captures_content);
        assert_eq!(settings.service_name, Some("turnery"));
        assert_eq!(settings.timeout, Duration::from_secs(10));
        assert_eq!(settings.parent, []);
        for named in [
            ("OTEL_SERVICE_NAME", "desk"),
            ("OTEL_RESOURCE_ATTRIBUTES", "a=b, service.name=desk"),
        ] {
            let settings = read(&[ENDPOINT, named]).unwrap().unwrap();
            assert_eq!(settings.service_name, None, "{named:?}");
        }
    }

    #[test]
    fn content_is_captured_on_request_only() {
        let name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
        for (value, captures) in [
            ("true", true),
            ("True", true),
            ("SPAN_ONLY", true),
            ("SPAN_AND_EVENT", true),
            ("EVENT_ONLY", false),
            ("NO_CONTENT", false),
            ("false", false),
        ] {
            let settings = read(&[ENDPOINT, (name, value)]).unwrap().unwrap();
            assert_eq!(settings.captures_content, captures, "{value}");
        }
    }

    #[test]
    fn invalid_endpoint_is_named_but_not_shown() {
        let shared = "OTEL_EXPORTER_OTLP_ENDPOINT";
        let own = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
        for address in [
            "http://host/a key-4711",
            "host:4318/key-4711",
            "grpc://host/key-4711",
            "http://key-4711:65536",
            "/key-4711",
        ] {
            for name in [shared, own] {
                let problem = read(&[(name, address)]).unwrap_err();
                let told = "is not a valid address; use one such as http://localhost:4318";
                assert_eq!(problem, format!("{name} {told}"), "{address}");
            }
            // Not used.
            let variables = [
                (shared, address),
                (own, "http://a/m"),
                ("OTEL_TRACES_EXPORTER", "none"),
            ];
            assert!(read(&variables).unwrap().is_some());
        }
        for address in ["https://me:key@host/otlp/", "http://[::1]:4318", "HTTP://h"] {
            let settings = read(&[(shared, address)]).unwrap().unwrap();
            assert_eq!(settings.endpoints, [address, address]);
        }
    }

    #[test]
    fn wrong_values_name_variable_and_remedy() {
        for (name, value, remedy) in [
            ("OTEL_TRACES_EXPORTER", "zipkin", "use `otlp` or `none`"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "`http/protobuf`"),
            ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "grpc", "port 4318"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "such as 10000"),
            ("OTEL_TRACES_SAMPLER", "sometimes", "always_on, always_off"),
            ("OTEL_TRACES_SAMPLER_ARG", "7", "from 0 to 1"),
            ("OTEL_BSP_SCHEDULE_DELAY", "x", "a whole number"),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization key-4711",
                "NAME=VALUE",
            ),
            ("OTEL_SDK_DISABLED", "yes", "true, false"),
            (
                "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
                "1",
                "true, span_only",
            ),
        ] {
            let problem = read(&[ENDPOINT, (name, value)]).unwrap_err();
            assert!(problem.starts_with(name), "{problem}");
            assert!(problem.contains(remedy), "{problem}");
            assert!(!problem.contains("key-4711"), "{problem}");
        }
    }
}
