//! Checks both directions of a connection: the suite's oracle checks the rules of the protocol, and
//! [`Promises`] checks what turnery guarantees beyond them.

use super::{
    client_line::{ClientLine, classify},
    promises::GuaranteeChecker,
};
use acp_conformance::oracle::{Oracle, OutputEnding, Violation};
use serde_json::Value;

/// Observer of one connection.
#[derive(Default)]
pub(crate) struct Judge {
    oracle: Oracle,
    promises: GuaranteeChecker,
    /// Number of accepted `initialize` requests.
    initialize_count: usize,
    /// Bytes of a client line that has no newline yet.
    partial_line: Vec<u8>,
}

impl Judge {
    /// Returns a lenient judge for a client that sends random, overlapping requests: it skips the promises
    /// about sessions, excuses violations that can be due to overlapping, and ignores all violations of the
    /// oracle once a request id was null or used twice at a time. Every request must still be answered.
    pub(crate) fn for_random_requests() -> Self {
        let mut judge = Self::default();
        judge.promises.skips_sessions = true;
        judge
    }

    /// Observes bytes written by the client.
    pub(crate) fn client_wrote(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.partial_line.extend_from_slice(piece);
            if self.partial_line.ends_with(b"\n") {
                self.check_client_line();
            }
        }
    }

    /// Observes the end of input: an unterminated last line counts as a line.
    pub(crate) fn client_closed(&mut self) {
        self.check_client_line();
        self.promises.client_closed();
    }

    fn check_client_line(&mut self) {
        let line = std::mem::take(&mut self.partial_line);
        let classified = classify(line.strip_suffix(b"\n").unwrap_or(&line));
        match &classified {
            ClientLine::Ignored => {}
            // The oracle need not know why turnery takes the line for malformed.
            ClientLine::Malformed => self.oracle.on_sent_line("malformed"),
            // turnery reads only the number's digits, but the oracle cannot hold it.
            ClientLine::Message { message, .. } if holds_huge_number(&line) => {
                self.oracle.on_sent_line(&message.to_string());
            }
            ClientLine::Message { .. } => self.oracle.on_sent_line(&String::from_utf8_lossy(&line)),
        }
        self.promises.client_sent(&classified);
    }

    /// Checks a line written by the agent, without its line end, and returns it parsed.
    ///
    /// # Errors
    /// Describes the violations.
    pub(crate) fn agent_wrote(&mut self, line: &str) -> Result<Value, String> {
        self.initialize_count += usize::from(line.contains(r#""protocolVersion":"#));
        let violations = self.oracle.on_received_line(format!("{line}\n").as_bytes());
        self.to_result(violations)
            .map_err(|why| format!("{why}: {line}"))?;
        let checked = self.promises.agent_sent(line);
        checked.map_err(|why| format!("{why}: {line}"))
    }

    /// Checks the end of the agent's output, after the last line was read.
    ///
    /// # Errors
    /// Describes the violations, such as missing responses.
    pub(crate) fn agent_closed(&mut self) -> Result<(), String> {
        let violations = self.oracle.on_output_end(OutputEnding::Eof);
        self.to_result(violations)?;
        self.promises.agent_closed()
    }

    fn to_result(&self, violations: Vec<Violation>) -> Result<(), String> {
        let is_unclear = self.promises.skips_sessions && self.promises.has_ambiguous_id;
        if violations.is_empty() || is_unclear {
            return Ok(());
        }
        // The answer to a question may cross the message of a command, and a call may be live during a load. Open
        // sessions keep the capabilities of the `initialize` before them, also if another one is accepted.
        let is_excused = |found: &Violation| {
            let crosses = found.why.starts_with("it works without an open request")
                || ["LOAD-7", "TOOL-2"].contains(&found.rule);
            let is_negotiated = ["EXT-1", "COMP-1", "NOTE-1"].contains(&found.rule);
            let is_repeated = self.initialize_count > 1;
            self.promises.skips_sessions && (crosses || is_negotiated && is_repeated)
        };
        let mut texts = Vec::new();
        for found in violations.iter().filter(|found| !is_excused(found)) {
            texts.push(format!("{}: {}", found.rule, found.why));
        }
        match texts.is_empty() {
            true => Ok(()),
            false => Err(texts.join("; ")),
        }
    }
}

/// Returns true for JSON with a number beyond the range of a double.
fn holds_huge_number(line: &[u8]) -> bool {
    let parsed = serde_json::from_slice::<Value>(line);
    parsed.is_err_and(|error| error.to_string().starts_with("number out of range"))
}
