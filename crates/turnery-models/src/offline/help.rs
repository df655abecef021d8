//! Help: what this is and is not, what it can do, and how to connect a model.

use super::{
    intent::{Aim, Topic},
    lookup,
    replay::{Halt, Replay},
};

const HONEST: &str = "No model is connected. I am the offline mode of turnery: a set of rules, not an AI. I recognise what a sentence asks for and use the same tools as a model would.\n";

/// Said first where a picture came along.
pub(super) const BLIND: &str =
    "I cannot see pictures, so I go by the words alone; a connected model can.\n\n";

const SKILLS: &str = "\nWhat I can do, with examples:
- explain this repository
- where is `Name` defined? / who uses `Name`? / search for \"some text\"
- outline src/main.rs / outline src
- show src/main.rs:10-40 / list the files / find *.md
- replace `old_name` with `new_name` in src
- run the tests / build / lint / run `make check`
- apply a patch: paste a unified diff
- what changed? / write a commit message / recent commits
- list the TODOs
- explain E0502
";

const CONNECT: &str = "\nTo connect a model, type `turnery login` in a terminal, or set one of these and start again:
- ANTHROPIC_API_KEY for Claude
- OPENAI_API_KEY for OpenAI, or OPENAI_BASE_URL for any server that speaks its API, for example Ollama: OPENAI_BASE_URL=http://localhost:11434/v1
Then `turnery models` lists what is within reach, and `--model provider/model` chooses one.
";

#[expect(clippy::unnecessary_wraps, reason = "every skill has this form")]
pub(super) fn help(topic: Topic, replay: &mut Replay<'_>) -> Result<(), Halt> {
    match topic {
        Topic::Greeting => {
            replay.say("Hello! ");
            replay.say(HONEST);
            replay.say(SKILLS);
            replay.say("\nSay \"help\" for how to connect a model.\n");
        }
        Topic::Skills => {
            replay.say(HONEST);
            replay.say(SKILLS);
            replay.say(CONNECT);
        }
        Topic::Connect => replay.say(format!("{HONEST}{CONNECT}")),
    }
    Ok(())
}

/// Said when no rule fits. Names in the sentence are looked up all the same.
pub(super) fn unknown(words: &[String], replay: &mut Replay<'_>) -> Result<(), Halt> {
    let Some(word) = words
        .first()
        .filter(|_| replay.has("search") && replay.has("read_file"))
    else {
        replay.say("I did not understand that; I know some English sentences only. ");
        replay.say(HONEST);
        replay.say(SKILLS);
        replay.say("\nFor anything else connect a model: say \"help\" for how.\n");
        return Ok(());
    };
    lookup::lookup(word, Aim::Definition, replay)?;
    replay.say(format!(
        "\nThat is what I could look up about `{word}`; the rest of the request needs a model, and none is connected. Say \"help\" for what I can do and how to connect one.\n"
    ));
    Ok(())
}
