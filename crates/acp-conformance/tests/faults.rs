//! Each fault against small hand-written streams: what goes in, and what comes of it.
//!
//! A stream in `tests/faults/*.stream`:
//!
//! ```text
//! = late {"id":7,"result":{"stopReason":"end_turn"}}    a name for a message; names.txt has those of all files
//! fault late_update                                     begins a stream; `fault NAME bare` without the exchange below
//! client {"terminal":true}                              what the client offers
//! agent {"loadSession":true}                            what the agent says it can do
//! version 2
//! c> prompt                                             the client says
//! a> up {"sessionUpdate":"plan","entries":[]}           the agent says; `up` is an update in session s1
//!   >c end                                              what the client hears of it
//!   >a {"method":"x"}                                   what the agent hears of it
//!   nothing                                             nobody hears anything of it
//!   dies                                                and the process dies; `sleeps`: it is slow
//! c>raw "\r\n"                                          bytes, as a JSON string; `>craw` and `>araw` likewise
//! ```
//!
//! A line without consequences passes as it is. Every stream begins with an `initialize` and a
//! `session/new` in `/w` that gives the session s1, unless it is `bare`.

#[path = "faults/stream.rs"]
mod stream;

use acp_conformance::faults::{self, Breaker, Deed, Way};
use std::{collections::BTreeSet, fs, path::Path};
use stream::{Stream, streams};

/// Tested below: nobody would want to read their streams.
const LONG: [&str; 3] = [
    "line_limit_64_kib",
    "long_line_kills",
    "needlessly_long_line",
];

fn all_streams() -> Vec<Stream> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults");
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder of streams") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|end| end == "stream") {
            let text = fs::read_to_string(&path).expect("a stream");
            found.extend(streams(&path.display().to_string(), &text));
        }
    }
    found
}

#[test]
fn every_fault_does_what_its_stream_says() {
    let wrong: Vec<_> = all_streams()
        .iter()
        .filter_map(|stream| stream.play().err())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_fault_in_the_lines_has_a_stream_in_which_it_does_something() {
    let streams = all_streams();
    let tested: BTreeSet<_> = streams
        .iter()
        .filter(|stream| stream.expects_a_change())
        .map(|stream| stream.fault.as_str())
        .collect();
    let untested: Vec<_> = faults::all()
        .filter(|fault| fault.habit().is_none() && !LONG.contains(&fault.name))
        .filter(|fault| !tested.contains(fault.name))
        .map(|fault| fault.name)
        .collect();
    assert_eq!(untested, Vec::<&str>::new());
}

#[test]
fn without_a_fault_every_stream_passes_to_the_byte() {
    for stream in all_streams() {
        assert_eq!(stream.play_without_fault(), Ok(()), "{}", stream.fault);
    }
}

#[test]
fn no_two_faults_have_one_name() {
    let mut names = BTreeSet::new();
    let twice: Vec<_> = faults::all()
        .filter(|fault| !names.insert(fault.name))
        .map(|fault| fault.name)
        .collect();
    assert_eq!(twice, Vec::<&str>::new());
    assert!(names.len() >= 80, "{}", names.len());
}

/// A line of this many bytes, with its end.
fn line_of(length: usize) -> Vec<u8> {
    let mut line = vec![b'x'; length];
    line[length - 1] = b'\n';
    line
}

#[test]
fn a_limit_lies_at_64_kib() {
    for (name, deed) in [
        ("line_limit_64_kib", Deed::None),
        ("long_line_kills", Deed::Die),
    ] {
        let mut breaker = Breaker::new(faults::named(name));
        let outcome = breaker.line(Way::ToAgent, &line_of(65_536));
        assert_eq!(outcome.lines, [(Way::ToAgent, line_of(65_536))], "{name}");
        let outcome = breaker.line(Way::ToAgent, &line_of(65_537));
        assert_eq!(outcome.lines, [], "{name}");
        assert_eq!(outcome.deed, deed, "{name}");
        let outcome = breaker.line(Way::ToClient, &line_of(65_537));
        assert_eq!(outcome.lines, [(Way::ToClient, line_of(65_537))], "{name}");
    }
}

#[test]
fn a_needlessly_long_line_says_no_more_than_it_did() {
    let mut breaker = Breaker::new(faults::named("needlessly_long_line"));
    breaker.line(Way::ToAgent, b"{\"id\":1,\"method\":\"session/list\"}\n");
    let line = br#"{"id":1,"result":{"sessions":[]}}"#;
    let outcome = breaker.line(Way::ToClient, &[&line[..], b"\n"].concat());
    let (way, long) = &outcome.lines[0];
    assert_eq!(*way, Way::ToClient);
    assert_eq!(long.len(), line.len() + 41_943_040 + 1);
    assert!(long.starts_with(line));
    assert!(long.trim_ascii().len() == line.len());
}
