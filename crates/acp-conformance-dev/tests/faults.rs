//! Plays small hand-written streams through each fault and compares the output.
//!
//! A stream in `tests/faults/*.stream`:
//!
//! ```text
//! = late {"id":7,"result":{"stopReason":"end_turn"}}    a name for a message; names.txt has those for all files
//! fault late_update                                     begins a stream; `fault NAME bare` without the exchange below
//! client {"terminal":true}                              capabilities of the client
//! agent {"loadSession":true}                            capabilities of the agent
//! version 2
//! c> prompt                                             message from the client
//! a> up {"sessionUpdate":"plan","entries":[]}           message from the agent; `up` is an update in session s1
//!   >c end                                              received by the client as a result
//!   >a {"method":"x"}                                   received by the agent as a result
//!   nothing                                             no side receives anything
//!   dies                                                the process dies, too; `sleeps`: it is slow
//! c>raw "\r\n"                                          bytes, as a JSON string; `>craw` and `>araw` likewise
//! ```
//!
//! A line without consequences passes unchanged. Unless it is `bare`, every stream begins with an `initialize`
//! and a `session/new` in `/w` that returns the session s1.

#[path = "faults/stream.rs"]
mod stream;

use acp_conformance_dev::faults::{self, Direction, FaultInjector, SideEffect};
use std::{collections::BTreeSet, fs, path::Path};
use stream::{FaultStream, parse_streams};

/// Faults that are tested below, because their streams would be unreadable.
const LONG_LINE_FAULTS: [&str; 3] = [
    "line_limit_64_kib",
    "long_line_kills",
    "needlessly_long_line",
];

fn all_streams() -> Vec<FaultStream> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults");
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder of streams") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|end| end == "stream") {
            let text = fs::read_to_string(&path).expect("a stream");
            found.extend(parse_streams(&path.display().to_string(), &text));
        }
    }
    found
}

#[test]
fn every_fault_matches_its_streams() {
    let wrong: Vec<_> = all_streams()
        .iter()
        .filter_map(|stream| stream.play().err())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_line_fault_has_an_effective_stream() {
    let streams = all_streams();
    let tested: BTreeSet<_> = streams
        .iter()
        .filter(|stream| stream.expects_change())
        .map(|stream| stream.fault.as_str())
        .collect();
    let untested: Vec<_> = faults::all()
        .filter(|fault| fault.process_fault().is_none() && !LONG_LINE_FAULTS.contains(&fault.name))
        .filter(|fault| !tested.contains(fault.name))
        .map(|fault| fault.name)
        .collect();
    assert_eq!(untested, Vec::<&str>::new());
}

#[test]
fn streams_pass_unchanged_without_a_fault() {
    for stream in all_streams() {
        assert_eq!(stream.play_without_fault(), Ok(()), "{}", stream.fault);
    }
}

#[test]
fn fault_names_are_unique() {
    let mut names = BTreeSet::new();
    let twice: Vec<_> = faults::all()
        .filter(|fault| !names.insert(fault.name))
        .map(|fault| fault.name)
        .collect();
    assert_eq!(twice, Vec::<&str>::new());
    assert!(names.len() >= 80, "{}", names.len());
}

/// Returns a line of this many bytes, including its line end.
fn line_of(length: usize) -> Vec<u8> {
    let mut line = vec![b'x'; length];
    line[length - 1] = b'\n';
    line
}

#[test]
fn line_limit_is_64_kib() {
    for (name, deed) in [
        ("line_limit_64_kib", SideEffect::None),
        ("long_line_kills", SideEffect::Die),
    ] {
        let mut breaker = FaultInjector::new(faults::find(name));
        let outcome = breaker.process_line(Direction::ToAgent, &line_of(65_536));
        assert_eq!(
            outcome.lines,
            [(Direction::ToAgent, line_of(65_536))],
            "{name}"
        );
        let outcome = breaker.process_line(Direction::ToAgent, &line_of(65_537));
        assert_eq!(outcome.lines, [], "{name}");
        assert_eq!(outcome.side_effect, deed, "{name}");
        let outcome = breaker.process_line(Direction::ToClient, &line_of(65_537));
        assert_eq!(
            outcome.lines,
            [(Direction::ToClient, line_of(65_537))],
            "{name}"
        );
    }
}

#[test]
fn needlessly_long_line_keeps_its_meaning() {
    let mut breaker = FaultInjector::new(faults::find("needlessly_long_line"));
    breaker.process_line(
        Direction::ToAgent,
        b"{\"id\":1,\"method\":\"session/list\"}\n",
    );
    let line = br#"{"id":1,"result":{"sessions":[]}}"#;
    let outcome = breaker.process_line(Direction::ToClient, &[&line[..], b"\n"].concat());
    let (way, long) = &outcome.lines[0];
    assert_eq!(*way, Direction::ToClient);
    assert_eq!(long.len(), line.len() + 41_943_040 + 1);
    assert!(long.starts_with(line));
    assert!(long.trim_ascii().len() == line.len());
}
