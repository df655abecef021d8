//! Reads after which delay a provider wants to be called again.

use chrono::{DateTime, NaiveDateTime, Utc};
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::time::Duration;

/// Forms of dates in HTTP: RFC 1123, RFC 850 and `asctime` (RFC 9110, section 5.6.7). All are in GMT.
const DATE_FORMS: [&str; 3] = [
    "%a, %d %b %Y %H:%M:%S GMT",
    "%A, %d-%b-%y %H:%M:%S GMT",
    "%a %b %e %H:%M:%S %Y",
];

/// Words before a delay in a message, in lower case.
const DELAY_WORDS: [&str; 5] = [
    "try again in ",
    "retry in ",
    "retry after ",
    "try again after ",
    "please wait ",
];

/// Returns the delay that the headers or the body of an error response ask for. Headers take precedence.
///
/// The time at which a quota is reset counts with status 429 only: servers also send it with other errors, where the
/// quota is not used up.
pub(super) fn from_response(
    status: u16,
    headers: &HeaderMap,
    body: &str,
    now: DateTime<Utc>,
) -> Option<Duration> {
    let is_rate_limit = status == 429;
    from_headers(headers, is_rate_limit, now).or_else(|| from_body(body, is_rate_limit, now))
}

/// Reads `retry-after-ms`, else `retry-after` (seconds or a date), else `x-ratelimit-reset`.
fn from_headers(headers: &HeaderMap, is_rate_limit: bool, now: DateTime<Utc>) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let millis = || seconds(number(header("retry-after-ms")?)? / 1000.0);
    let after = || {
        let text = header("retry-after")?;
        match number(text) {
            Some(number) => seconds(number),
            None => until(parse_date(text)?, now),
        }
    };
    let reset = || reset_time(header("x-ratelimit-reset").filter(|_| is_rate_limit)?, now);
    millis().or_else(after).or_else(reset)
}

/// Reads the error object in a body: `RetryInfo` of Google, the rate limit headers that OpenRouter passes on.
fn from_body(body: &str, is_rate_limit: bool, now: DateTime<Utc>) -> Option<Duration> {
    let value: Value = serde_json::from_str(body).ok()?;
    // Gemini-compatible servers wrap the object in a list.
    let error = value.get(0).unwrap_or(&value).get("error")?;
    let details = error.get("details").and_then(Value::as_array);
    let infos = details.into_iter().flatten();
    let delays = infos.filter_map(|info| info.get("retryDelay")?.as_str());
    let delay = delays.filter_map(parse_duration).next();
    delay.or_else(|| {
        let reset = error
            .pointer("/metadata/headers/X-RateLimit-Reset")
            .filter(|_| is_rate_limit)?;
        reset_time(
            &reset
                .as_str()
                .map_or_else(|| reset.to_string(), str::to_owned),
            now,
        )
    })
}

/// Returns the delay that a message names: "Please try again in 7.66s." Numbers without a unit are seconds.
pub(super) fn from_message(message: &str) -> Option<Duration> {
    let text = message.to_ascii_lowercase();
    let after = |word: &&str| text.split_once(*word).map(|(_, rest)| rest);
    DELAY_WORDS
        .iter()
        .filter_map(after)
        .find_map(parse_duration)
}

/// Parses the duration at the start of a text: `7.66s`, `1m2.5s`, `6h0m0s`, `20ms`, `30 seconds`, `34`.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut total = None;
    let mut rest = text;
    loop {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (count, after) = rest.split_at(digits);
        // The full stop that ends a sentence.
        let Some(count) = number(count.trim_end_matches('.')) else {
            break;
        };
        let unit = after.trim_start_matches(' ');
        let letters = unit
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(unit.len());
        let (unit, after) = unit.split_at(letters);
        let unit_seconds = match unit {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ if total.is_none() => 1.0,
            _ => break,
        };
        total = Some(total.unwrap_or(0.0) + count * unit_seconds);
        rest = after.trim_start_matches(' ');
    }
    seconds(total?)
}

/// Reads a time of day or a delay: milliseconds or seconds since 1970, else seconds from now.
fn reset_time(text: &str, now: DateTime<Utc>) -> Option<Duration> {
    let value = number(text)?;
    let now_millis = f64::from(u32::try_from(now.timestamp()).ok()?) * 1000.0;
    let since_epoch = match value {
        millis if millis >= 1e12 => millis,
        at if at >= 1e9 => at * 1000.0,
        delay => return seconds(delay),
    };
    seconds(((since_epoch - now_millis) / 1000.0).max(0.0))
}

fn parse_date(text: &str) -> Option<DateTime<Utc>> {
    let parse = |form: &&str| NaiveDateTime::parse_from_str(text, form).ok();
    let date = DATE_FORMS.iter().find_map(parse).map(|date| date.and_utc());
    // Servers also write other zones, which the standard forbids.
    date.or_else(|| Some(DateTime::parse_from_rfc2822(text).ok()?.with_timezone(&Utc)))
}

/// Returns the time until `date`; zero if it has passed.
fn until(date: DateTime<Utc>, now: DateTime<Utc>) -> Option<Duration> {
    Some((date - now).to_std().unwrap_or_default())
}

fn number(text: &str) -> Option<f64> {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    is_number.then(|| text.parse().ok())?
}

/// Returns `None` for a negative or too long delay.
fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderName, HeaderValue};

    /// 21 November 2026, 12:00:00 UTC: 1795262400 seconds since 1970.
    fn now() -> DateTime<Utc> {
        "2026-11-21T12:00:00Z".parse().unwrap()
    }

    fn of_headers(status: u16, headers: &[(&'static str, &str)]) -> Option<Duration> {
        let pair = |(name, value): &(&'static str, &str)| {
            let value = HeaderValue::from_str(value).unwrap();
            (HeaderName::from_static(name), value)
        };
        from_response(status, &headers.iter().map(pair).collect(), "", now())
    }

    fn millis(millis: u64) -> Option<Duration> {
        Some(Duration::from_millis(millis))
    }

    /// Quirk 56.
    // proves: ANTHROPIC-56, CHAT-56, RESPONSES-56, GEMINI-56
    #[test]
    fn headers_are_read_in_every_form() {
        let cases = [
            (
                vec![("retry-after-ms", "250"), ("retry-after", "9")],
                millis(250),
            ),
            (vec![("retry-after", "1.5")], millis(1500)),
            (vec![("retry-after", " 7 ")], millis(7000)),
            (
                vec![("retry-after", "Sat, 21 Nov 2026 12:00:30 GMT")],
                millis(30_000),
            ),
            (
                vec![("retry-after", "Saturday, 21-Nov-26 12:00:30 GMT")],
                millis(30_000),
            ),
            (
                vec![("retry-after", "Sat Nov 21 12:00:30 2026")],
                millis(30_000),
            ),
            (
                vec![("retry-after", "Tue Dec  1 12:00:00 2026")],
                millis(864_000_000),
            ),
            (
                vec![("retry-after", "Sat, 21 Nov 2026 13:00:30 +0100")],
                millis(30_000),
            ),
            (
                vec![("retry-after", "Sat, 21 Nov 2026 11:00:00 GMT")],
                millis(0),
            ),
            (vec![("x-ratelimit-reset", "1795262420")], millis(20_000)),
            (vec![("x-ratelimit-reset", "1795262400500")], millis(500)),
            (vec![("x-ratelimit-reset", "1795262000")], millis(0)),
            (vec![("x-ratelimit-reset", "12")], millis(12_000)),
            (
                vec![("retry-after", "3"), ("x-ratelimit-reset", "12")],
                millis(3000),
            ),
            (vec![("retry-after", "-1")], None),
            (vec![("retry-after", "soon")], None),
            (vec![("retry-after", "inf")], None),
            (vec![("retry-after", "1e300")], None),
            (vec![], None),
        ];
        for (headers, expected) in cases {
            assert_eq!(of_headers(429, &headers), expected, "{headers:?}");
        }
    }

    #[test]
    fn quota_reset_delays_only_rate_limits() {
        let router = r#"{"error":{"metadata":{"headers":{"X-RateLimit-Reset":"3600"}}}}"#;
        for (status, expected) in [(429, millis(3_600_000)), (503, None), (500, None)] {
            let reset = [("x-ratelimit-reset", "3600")];
            assert_eq!(of_headers(status, &reset), expected, "{status}");
            let body = from_response(status, &HeaderMap::new(), router, now());
            assert_eq!(body, expected, "{status}");
            let both = [("retry-after", "3"), ("x-ratelimit-reset", "3600")];
            assert_eq!(of_headers(status, &both), millis(3000), "{status}");
        }
    }

    /// Quirk 56: `google.rpc.RetryInfo`, and the headers that OpenRouter passes on.
    #[test]
    fn bodies_are_read_without_headers() {
        let google = r#"{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.4s"}]}}"#;
        let listed = format!("[{google}]");
        let router = r#"{"error":{"code":429,"metadata":{"headers":{"X-RateLimit-Limit":"50","X-RateLimit-Reset":"1795262460000"}}}}"#;
        let of_body = |body: &str| from_response(429, &HeaderMap::new(), body, now());
        assert_eq!(of_body(google), millis(34_400));
        assert_eq!(of_body(&listed), millis(34_400));
        assert_eq!(of_body(router), millis(60_000));
        assert_eq!(of_body(r#"{"error":"busy"}"#), None);
        assert_eq!(of_body("busy"), None);
    }

    /// Quirk 56: delays in words.
    #[test]
    fn delays_in_messages_are_read_with_their_units() {
        for (message, expected) in [
            (
                "Rate limit reached. Please try again in 7.66s. Visit https://example.com.",
                millis(7660),
            ),
            ("Please try again in 1m2.5s.", millis(62_500)),
            ("Please try again in 6h0m0s", millis(21_600_000)),
            ("Try again in 20ms.", millis(20)),
            ("Please retry in 34.4s.", millis(34_400)),
            ("Retry after 30 seconds", millis(30_000)),
            ("Please retry after 5", millis(5000)),
            ("Please try again in 1 minute and 5 seconds", millis(60_000)),
            ("try again in 2 hours 30 minutes.", millis(9_000_000)),
            (
                "Please wait 3 seconds before the next request",
                millis(3000),
            ),
            ("Please try again in a few minutes", None),
            ("try again later", None),
            ("", None),
        ] {
            assert_eq!(from_message(message), expected, "{message}");
        }
    }
}
