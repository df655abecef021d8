//! Tests of the table and the marks: valid, invalid, and those of this repository.

use super::{
    ProofStatus, behaviours, build_trace,
    kit::{self, TestKit, Tier},
    marks,
    modules::NamedModules,
    table::{self, RequirementId},
};

/// Returns the ids and tests of a Rust file, and its faults, as text.
fn rust(lines: &[&str]) -> (Vec<String>, Vec<String>) {
    to_text(marks::rust_marks("a.rs", &lines.join("\n")))
}

fn to_text(
    (proofs, faults): (Vec<marks::Proof>, Vec<marks::MarkError>),
) -> (Vec<String>, Vec<String>) {
    let proofs = proofs.iter().map(|proof| format!("{} {proof}", proof.id));
    (
        proofs.collect(),
        faults.iter().map(ToString::to_string).collect(),
    )
}

fn faults(lines: &[&str]) -> Vec<String> {
    rust(lines).1
}

#[test]
fn ids_are_written_in_one_way() {
    for text in [
        "TURN-8", "LASH-125", "ACP-1", "I13", "R1", "S8", "D-4", "C-34", "RPC-22", "V2-1",
        "INIT-3", "LIST-6", "G-1",
    ] {
        let id = RequirementId::parse(text).expect(text);
        assert_eq!(id.to_string(), text);
    }
    for text in [
        "",
        "TURN",
        "TURN-",
        "TURN8",
        "turn-8",
        "TURN-08",
        "TURN-0",
        "TURN-8a",
        "TURN--8",
        "I-3",
        "R",
        "D4",
        "PERMIT-1",
        "V21",
        "V-21",
        "RES1",
        "TURN-+8",
        "TURN-99999999999",
        "8",
        "É-1",
    ] {
        assert_eq!(RequirementId::parse(text), None, "{text}");
    }
}

#[test]
fn a_mark_belongs_to_the_test_below() {
    let (proofs, faults) = rust(&[
        "mod tests {",
        "    // proves: TURN-8, I3",
        "    // proves: D-4",
        "    /// Why.",
        "    #[tokio::test(",
        "        start_paused = true",
        "    )]",
        "    #[expect(clippy::unwrap_used, reason = \"[\")]",
        "    async fn one() {",
        "    }",
        "    proptest! {",
        "        // proves: R1",
        "        #[test]",
        "        fn law(a in 0..3) {}",
        "    }",
    ]);
    assert_eq!(faults, [""; 0]);
    assert_eq!(
        proofs,
        [
            "TURN-8 a.rs one",
            "I3 a.rs one",
            "D-4 a.rs one",
            "R1 a.rs law"
        ]
    );
}

#[test]
fn a_case_of_a_battery_is_a_test() {
    let lines = [
        "battery!(",
        "    a_lane_has_one_holder,",
        "    another",
        ");",
        "// proves: S1",
        "pub(crate) async fn a_lane_has_one_holder(world: &World) {",
        "}",
        "// proves: S2",
        "async fn helper(world: &World) {",
        "}",
    ];
    let (proofs, faults) = rust(&lines);
    assert_eq!(proofs, ["S1 a.rs a_lane_has_one_holder"]);
    assert_eq!(
        faults,
        ["a.rs:8: S2 stands above something that is no test"]
    );
}

#[test]
fn a_mark_above_anything_else_is_wrong() {
    for below in ["fn helper() {", "struct Test;", "mod test {", "}"] {
        assert_eq!(
            faults(&["// proves: TURN-8", below]),
            ["a.rs:1: TURN-8 stands above something that is no test"],
            "{below:?}"
        );
    }
    assert_eq!(
        faults(&["// proves: TURN-8", "#[derive(Debug)]", "fn helper() {"]),
        ["a.rs:1: TURN-8 stands above something that is no test"]
    );
    assert_eq!(
        faults(&["// proves: TURN-8", "", "#[test]", "fn one() {}"]),
        ["a.rs:1: TURN-8 stands above something that is no test"]
    );
    assert_eq!(
        faults(&["#[test]", "fn one() {}", "// proves: TURN-8"]),
        ["a.rs:3: TURN-8 stands above nothing"]
    );
}

#[test]
fn the_attribute_of_one_item_does_not_reach_the_next() {
    assert_eq!(
        faults(&["#[test]", "fn one() {}", "// proves: TURN-8", "fn two() {}"]),
        ["a.rs:3: TURN-8 stands above something that is no test"]
    );
}

#[test]
fn malformed_mark_is_an_error() {
    let right = "write a mark like this: `// proves: TURN-8, D-4`";
    for mark in [
        "// Proves: TURN-8",
        "// proves TURN-8",
        "//proves: TURN-8",
        "//  proves: TURN-8",
        "/// proves: TURN-8",
        "//! proves: TURN-8",
        "// PROVES TURN-8.",
        "// proves:TURN-8",
    ] {
        assert_eq!(
            faults(&[mark, "#[test]", "fn one() {}"]),
            [format!("a.rs:1: {right}")],
            "{mark}"
        );
    }
    // Ordinary comments may use the word.
    assert_eq!(faults(&["// This proves nothing."]), [""; 0]);
    assert_eq!(faults(&["// proves that it works"]), [""; 0]);
}

#[test]
fn invalid_id_is_reported_with_line() {
    assert_eq!(
        faults(&["", "// proves: TURN-8, turn-9,", "#[test]", "fn one() {}"]),
        ["a.rs:2: \"turn-9\" is no id", "a.rs:2: \"\" is no id"]
    );
    assert_eq!(
        faults(&["// proves: I1..I3", "#[test]", "fn one() {}"]),
        ["a.rs:1: \"I1..I3\" is no id"]
    );
    assert_eq!(
        faults(&[
            "// proves: R1, R1",
            "// proves: R1",
            "#[test]",
            "fn one() {}"
        ]),
        ["a.rs:1: R1 is named twice", "a.rs:2: R1 is named twice"]
    );
}

#[test]
fn a_case_file_is_one_test() {
    let text = "# Purpose @ TR-1.\n# proves: ACP-2, ACP-3\nstart\n# proves: ACP-5\n\
        quiet @ TR-2 TR-3\nno {\"a\": \" @ TR-4 b\"}\nexit 0 @ TR-2\n";
    let (proofs, faults) = to_text(marks::case_marks("b.case", text));
    let ids = ["ACP-2", "ACP-3", "ACP-5", "TR-2", "TR-3"];
    assert_eq!(proofs, ids.map(|id| format!("{id} b.case")));
    assert_eq!(faults, [""; 0]);
    let (_, faults) = to_text(marks::case_marks(
        "b.case",
        "# Proves: ACP-2\n# proves: X\n",
    ));
    assert_eq!(
        faults,
        [
            "b.case:1: write a mark like this: `# proves: ACP-2, ACP-3`",
            "b.case:2: \"X\" is no id"
        ]
    );
}

#[test]
fn a_broken_table_says_what_is_wrong() {
    for (text, what) in [
        ("TURN-1 = 3", "TURN-1"),
        ("TURN-1 = { say = \"a\" }", "say"),
        (
            "TURN-1 = { says = \"a\" }\nTURN-1 = { says = \"b\" }",
            "duplicate",
        ),
        ("TURN1 = { says = \"a\" }", "\"TURN1\" is no id"),
        ("TURN-1 = { says = \" \" }", "TURN-1 has an empty text"),
        (
            "TURN-1 = { says = \"a\", waived = \"\" }",
            "TURN-1 has an empty text",
        ),
        (
            "TURN-1 = { says = \"a\", waived = \"b\", later = \"c\" }",
            "TURN-1 is both waived and for later",
        ),
        (
            "TR-1 = { says = \"a\", level = \"must\" }",
            "TR-1 has no level \"must\"",
        ),
        (
            "I1 = { says = \"a\" }\nI3 = { says = \"a\" }",
            "I has a hole: I3 follows number 1",
        ),
        (
            "TURN-2 = { says = \"a\" }",
            "TURN has a hole: TURN-2 follows number 0",
        ),
    ] {
        let error = table::parse(text, "rules = {}")
            .expect_err(text)
            .to_string();
        assert!(error.contains(what), "{text}: {error}");
    }
}

#[test]
fn protocol_rules_join_the_table() {
    let protocol = "[rules.TR-1]\nlevel = \"MUST\"\nsays = \"a\"\nsource = \"b\"\n\
        [rules.TR-2]\nlevel = \"MAY\"\nsays = \"c\"\nuntestable = \"d\"\n";
    let table =
        table::parse(&format!("{SMALL}\n[waived]\nTR-1 = \"e\""), protocol).expect("a table");
    let rule = |id: &str| &table[&RequirementId::parse(id).expect(id)];
    assert_eq!(rule("TR-1").waived.as_deref(), Some("e"));
    assert_eq!(rule("TR-2").level.as_deref(), Some("MAY"));
    // What the suite cannot observe, a test of turnery still has to prove.
    assert_eq!(rule("TR-2").waived, None);
    for (own, what) in [
        ("TR-1 = { says = \"a\" }", "TR-1 is in both tables"),
        ("[waived]\nTR-3 = \"a\"", "TR-3 is waived, but is no rule"),
        ("[waived]\nTR-1 = \"\"", "TR-1 has an empty text"),
    ] {
        let error = table::parse(own, protocol).expect_err(own).to_string();
        assert!(error.contains(what), "{own}: {error}");
    }
}

const SMALL: &str = "
    R1 = { says = \"one\", differs = \"two\" }
    R2 = { says = \"two\", waived = \"why\" }
    R3 = { says = \"three\", later = \"RLM\" }
    R4 = { says = \"four\", level = \"MUST\" }";

fn proofs_of(ids: &str) -> Vec<marks::Proof> {
    marks::case_marks("b.case", &format!("# proves: {ids}")).0
}

#[test]
fn every_id_has_a_proof_status() {
    let table = table::parse(SMALL, "rules = {}").expect("a table");
    let trace = build_trace(table, TestKit::new(), proofs_of("R1"), Vec::new()).expect("a trace");
    let stands = |text: &str| trace.status_of(&RequirementId::parse(text).expect(text));
    assert_eq!(stands("R1"), ProofStatus::Proved);
    assert_eq!(stands("R2"), ProofStatus::Waived);
    assert_eq!(stands("R3"), ProofStatus::Later);
    assert_eq!(stands("R4"), ProofStatus::Missing);
    let shown: Vec<String> = trace.table.keys().map(|id| trace.render(id)).collect();
    assert_eq!(
        shown,
        [
            "R1: one\n    differs from the documents: two\n    b.case\n",
            "R2: two\n    waived: why\n",
            "R3: three\n    later: RLM\n",
            "R4 (MUST): four\n    no test\n"
        ]
    );
    let summary = trace.summary();
    assert!(
        summary.contains("\nall           4       1        1       1      1\n"),
        "{summary}"
    );
}

#[test]
fn proved_id_marked_later_is_stale() {
    let table = table::parse(SMALL, "rules = {}").expect("a table");
    let trace = build_trace(table, TestKit::new(), proofs_of("R3"), Vec::new()).expect("a trace");
    let id = RequirementId::parse("R3").expect("an id");
    assert_eq!(trace.status_of(&id), ProofStatus::Proved);
    assert_eq!(
        trace.render(&id),
        "R3: three\n    b.case\n    not for later: RLM\n"
    );
    assert_eq!(trace.proved_but_later(), ["R3"]);
}

#[test]
fn kit_requirements_map_to_rules() {
    let text = "
        ACP-INFO-PARSE-001 = { tier = \"informational\", asks = \"a\", rules = [\"R1\", \"R4\"] }
        ACP-LOAD-001 = { tier = \"capability\", asks = \"b\", rules = [\"R1\"] }
        ACP-LOAD-002 = { tier = \"mandatory\", asks = \"c\", rules = [\"R2\"] }";
    let table = table::parse(SMALL, "rules = {}").expect("a table");
    let kit = kit::parse(text, &table).expect("a kit");
    assert_eq!(kit["ACP-LOAD-002"].tier, Tier::Mandatory);
    let trace = build_trace(table, kit, proofs_of("R1"), Vec::new()).expect("a trace");
    assert_eq!(
        trace.unproved_kit_requirements(),
        ["ACP-INFO-PARSE-001", "ACP-LOAD-002"]
    );
    assert_eq!(
        trace.render_kit_requirement("ACP-LOAD-001"),
        "ACP-LOAD-001 (capability): b\nR1: one\n    differs from the documents: two\n    b.case\n"
    );
}

#[test]
fn a_broken_kit_says_what_is_wrong() {
    let line = |id: &str, asks: &str, rules: &str| {
        format!("{id} = {{ tier = \"advisory\", asks = \"{asks}\", rules = [{rules}] }}")
    };
    for (line, what) in [
        (line("LOAD-001", "a", "\"R1\""), "\"LOAD-001\" is no id"),
        (line("ACP-LOAD-1", "a", "\"R1\""), "is no id of the kit"),
        (line("ACP-001", "a", "\"R1\""), "is no id of the kit"),
        (
            line("ACP-LOAD-002", "a", "\"R1\""),
            "hole ahead of ACP-LOAD-002",
        ),
        (
            line("ACP-LOAD-001", " ", "\"R1\""),
            "ACP-LOAD-001 asks nothing",
        ),
        (line("ACP-LOAD-001", "a", ""), "comes down to no rule"),
        (
            line("ACP-LOAD-001", "a", "\"R9\""),
            "there is no requirement \"R9\"",
        ),
        (
            line("ACP-LOAD-001", "a", "\"R1\", \"R1\""),
            "names R1 twice",
        ),
        (
            "ACP-LOAD-001 = { asks = \"a\" }".to_owned(),
            "missing field",
        ),
    ] {
        let table = table::parse(SMALL, "rules = {}").expect("a table");
        let error = kit::parse(&line, &table).expect_err(&line);
        assert!(format!("{error:#}").contains(what), "{error:#}");
    }
}

#[test]
fn a_mark_must_fit_the_table() {
    for (ids, what) in [
        ("R5", "b.case:1: there is no requirement R5"),
        ("R2", "b.case:1: R2 is waived and proved here"),
    ] {
        let table = table::parse(SMALL, "rules = {}").expect("a table");
        let error = build_trace(table, TestKit::new(), proofs_of(ids), Vec::new())
            .err()
            .expect(ids);
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn marks_in_uncompiled_file_are_errors() {
    let mut modules = NamedModules::default();
    modules.add_file(
        "crates/a/src/lib.rs",
        "mod one;\npub(crate) mod two;\n#[cfg(test)]\n#[path = \"odd_tests.rs\"]\nmod tests;\n\
         // mod three\nmod here {\n}\n",
    );
    for path in [
        "crates/a/src/lib.rs",
        "crates/a/src/one.rs",
        "crates/a/src/two/mod.rs",
        "crates/a/src/odd_tests.rs",
        "crates/a/tests/any.rs",
        "crates/a/tests/it/main.rs",
        "conformance/cases/x.case",
    ] {
        assert!(modules.is_tested(path), "{path}");
    }
    for path in [
        "crates/a/src/three.rs",
        "crates/a/src/here.rs",
        "crates/a/tests/it/one_more.rs",
        "crates/b/src/one.rs",
        "elsewhere/x.case",
        "x.rs",
    ] {
        assert!(!modules.is_tested(path), "{path}");
    }
}

#[test]
fn behaviour_is_a_requirement_of_each_format() {
    let text = "[1]\nheading = \"A\"\nsays = \"one\"\ngemini = \"why|\"\n\
        [2]\nsays = \"`|two|`\"\n[10]\nheading = \"B\"\nsays = \"ten\"";
    let mut table = table::Table::new();
    let rows = behaviours::parse(text, &mut table).expect("rows");
    assert_eq!(table.len(), 12);
    let cell = |id: &RequirementId| match &table[id].waived {
        Some(reason) => format!("n/a: {reason}"),
        None => id.to_string(),
    };
    let mark = "<!-- `cargo xtask models` writes what is below, from model-behaviours.toml and the tests. -->";
    let page = behaviours::render_page(&format!("Intro.\n{mark}\nold"), &rows, cell);
    let head = "| | behaviour | `anthropic` | `openai` | `openai_responses` | `gemini` |\n|---|---|---|---|---|---|";
    assert_eq!(
        page.expect("a page"),
        format!(
            "Intro.\n{mark}\n\n### A\n\n{head}\n\
             | 1 | one | ANTHROPIC-1 | CHAT-1 | RESPONSES-1 | n/a: why\\| |\n\
             | 2 | `\\|two\\|` | ANTHROPIC-2 | CHAT-2 | RESPONSES-2 | GEMINI-2 |\n\n### B\n\n{head}\n\
             | 10 | ten | ANTHROPIC-10 | CHAT-10 | RESPONSES-10 | GEMINI-10 |\n"
        )
    );
    assert!(behaviours::render_page("no mark", &rows, cell).is_err());
    // Numbers without a gap are checked with the other groups.
    assert!(table::check_entries(&table).is_err());
    for (text, what) in [
        ("[1]\nsays = \"one\"", "no heading"),
        ("[one]\nsays = \"one\"", "no number"),
        ("[01]\nsays = \"one\"", "no number"),
        (
            "[1]\nheading = \"A\"\nsays = \"one\"\nopenai = \"why\"",
            "unknown field",
        ),
    ] {
        let error = behaviours::parse(text, &mut table::Table::new()).err();
        let error = format!("{:#}", error.expect(what));
        assert!(error.contains(what), "{error}");
    }
}

/// The page is what the table and the marks say.
#[test]
fn page_about_models_is_up_to_date() {
    let trace = super::read_trace().expect("well-formed");
    let page = super::read_file(super::MODELS_PAGE).expect("the page");
    assert_eq!(trace.model_page().expect("a page"), page);
    assert!(!page.contains("no test"));
}

/// The real table and the real marks are well-formed, and no id was lost.
#[test]
fn this_repository_is_well_formed() {
    let trace = super::read_trace().expect("well-formed");
    let count = |group| trace.table.keys().filter(|id| id.group() == group).count();
    let counts: Vec<(&str, usize)> = table::GROUPS.iter().map(|g| (*g, count(*g))).collect();
    assert_eq!(
        counts,
        [
            ("TURN", 71),
            ("LOOP", 92),
            ("JIDO", 79),
            ("ACP", 57),
            ("LASH", 125),
            ("I", 13),
            ("R", 9),
            ("S", 8),
            ("D", 18),
            ("C", 34),
            ("UP", 41),
            ("TR", 13),
            ("RPC", 23),
            ("INIT", 15),
            ("AUTH", 11),
            ("SESS", 10),
            ("DIR", 6),
            ("LOAD", 7),
            ("RES", 2),
            ("LIST", 6),
            ("CLOSE", 3),
            ("DEL", 3),
            ("MCP", 7),
            ("PROMPT", 13),
            ("MSG", 4),
            ("UPD", 2),
            ("USAGE", 1),
            ("INFO", 1),
            ("NOTE", 1),
            ("COMP", 2),
            ("TOOL", 11),
            ("PERM", 8),
            ("FS", 3),
            ("TERM", 4),
            ("CANCEL", 11),
            ("REQC", 4),
            ("PLAN", 2),
            ("MODE", 4),
            ("CFG", 7),
            ("CMD", 3),
            ("ELIC", 8),
            ("EXT", 7),
            ("V2", 22),
            ("G", 28),
            ("THEME", 20),
            ("ANTHROPIC", 92),
            ("CHAT", 92),
            ("RESPONSES", 92),
            ("GEMINI", 92),
        ]
    );
    assert_eq!(trace.kit.len(), 56, "the kit's requirements for version 1");
    let tiers = [
        Tier::Mandatory,
        Tier::Capability,
        Tier::Advisory,
        Tier::Informational,
    ];
    let of = |tier| {
        trace
            .kit
            .values()
            .filter(|asked| asked.tier == tier)
            .count()
    };
    assert_eq!(tiers.map(of), [21, 19, 12, 4]);
    let protocol = &table::GROUPS[11..45];
    let unlike = |(id, line): &(&RequirementId, &table::Requirement)| {
        line.level.is_some() != protocol.contains(&id.group())
    };
    let odd: Vec<String> = trace
        .table
        .iter()
        .filter(unlike)
        .map(|(id, _)| id.to_string())
        .collect();
    assert_eq!(
        odd, [""; 0],
        "a rule of a protocol has a level, and nothing else has"
    );
}
