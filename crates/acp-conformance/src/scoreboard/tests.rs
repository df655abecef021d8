//! What is played again, and what comes of it.

use super::*;
use crate::Facts;

/// Answers its first request with one code, or with the other if it has been started before.
fn agent(folder: &Path, first: i32, later: i32) -> Agent {
    let script = format!(
        "mkdir {}/begun 2> {0}/errors && code={first} || code={later}; read line; \
         echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{{\"code\":'$code',\"message\":\"no\"}}}}'; \
         cat > {0}/rest",
        folder.display()
    );
    Agent {
        command: ["sh", "-c", &script].map(str::to_owned).to_vec(),
        ..Agent::default()
    }
}

/// The rules that failed in the end, and what failed once only.
fn played(first: i32, later: i32) -> (Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let agent = agent(folder.path(), first, later);
    let case = "# x\nstart\n> {\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"_x/y\"}\n< {\"error\": {\"code\": -32601}} @ EXT-4\nexit 0\n";
    let cases = [Case::parse("asking", case).expect("a case")];
    let options = Options {
        jobs: 1,
        ..Options::default()
    };
    let facts = Some(Facts::default());
    let mut played = play_all(&cases, &agent, &options, facts, &|_| ()).expect("played");
    let once = again(&mut played, &cases, &agent, &options, &|_| ()).expect("played again");
    let failed = played.outcomes[0].findings();
    let failed = failed.map(|(rule, _)| rule.to_owned()).collect();
    (failed, once)
}

#[test]
fn what_fails_once_only_is_told_apart() {
    let (failed, once) = played(-32603, -32601);
    assert_eq!(failed, Vec::<String>::new());
    assert_eq!(once.len(), 1);
    assert!(once[0].starts_with("EXT-4: asking, line 4: "), "{once:?}");
}

#[test]
fn what_fails_twice_has_failed() {
    let (failed, once) = played(-32603, -32000);
    assert_eq!(failed, ["EXT-4"]);
    assert_eq!(once, Vec::<String>::new());
}
