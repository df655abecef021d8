//! What comes with the sentence: a diff that is to be reviewed and not applied, the output of a program.

use crate::driver::{Played, play};

const DIFF: &str = "--- a/src/core.py
+++ b/src/core.py
@@ -1,2 +1,3 @@
 import os
-x = 1
+def sub(a, b):
+    return a - b
";

/// No tool is needed to tell of what was pasted.
fn told(prompt: &str) -> Played {
    play(prompt, |tool, _| panic!("{tool} for {prompt:?}"))
}

#[test]
fn a_diff_to_review_is_not_applied() {
    for header in ["", "diff --git a/src/core.py b/src/core.py\n"] {
        for wish in ["review this", "what does this patch do?", "explain it"] {
            let played = told(&format!("{wish}\n\n{header}{DIFF}"));
            assert_eq!(
                played.text,
                "The diff changes 1 file, +2 -1 lines:
- src/core.py (changed, +2 -1): sub

A commit message could be:

```
core: change sub
```

A judgement of it needs a model, and none is connected (say \"help\" for how). To have it applied, say: apply this patch."
            );
        }
    }
    let played = told(&format!("write a commit message for this\n\n{DIFF}"));
    assert!(played.text.starts_with("```\ncore: change sub\n```"));
}

#[test]
fn a_diff_alone_or_with_the_word_for_it_is_applied() {
    for wish in ["", "apply this", "please apply the patch:"] {
        let played = play(&format!("{wish}\n\n{DIFF}"), |_, _| Ok("edited".into()));
        assert_eq!(played.names(), ["edit_file"], "{wish}");
    }
}

#[test]
fn what_a_program_printed_is_sorted() {
    let played =
        told("why does this fail?\n\nsrc/x.c:12:5: error: expected ';'\nmake: *** [x.o] Error 1");
    played.says(&[
        "What was pasted shows 1 error.",
        "First: src/x.c:12\n```\nexpected ';'\n```",
    ]);
    let played = told("why?\n\npython3: No module named pytest\n");
    assert_eq!(
        played.text,
        "`pytest` is not installed here, or not where programs are looked for."
    );
}

#[test]
fn prose_that_was_pasted_is_no_question_about_the_repository() {
    told("explain this\n\nThe quick brown fox\njumps over it.").says(&["No model is connected"]);
}
