// The official TypeScript client goes through a whole session of turnery, over two processes.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { endAll } from "./agent.mjs";
import { told } from "./story.mjs";

if (!process.env.TURNERY) throw new Error("set TURNERY to the path of the turnery binary");
const clients = dirname(dirname(fileURLToPath(import.meta.url)));
const scenario = join(dirname(clients), "scenarios/whole-session.json");
const expected = JSON.parse(readFileSync(join(clients, "whole-session.json"), "utf8"));
const turnery = [process.env.TURNERY, "acp", "--model", `scripted:${scenario}`];
// Only a hang takes longer.
const limit = { timeout: 600_000 };
after(endAll);

/** What came of the story, with names for the places. */
async function tell(command) {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "turnery-client-")));
  try {
    const tale = JSON.stringify(await told(command, `scripted/${scenario}`, home));
    const places = [[join(home, "project"), "$PROJECT"], [scenario, "$SCENARIO"]];
    return JSON.parse(places.reduce((text, [path, name]) => text.replaceAll(path, name), tale));
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

test("it is told as it is written", limit, async () => {
  assert.deepEqual(await tell(turnery), expected);
});

for (const [forgotten, missed] of [
  ['"sessionUpdate":"plan"', ["greeted", "edited", "loaded"]],
  ['"sessionUpdate":"user_message_chunk"', ["loaded", "forked"]],
  ['"sessionUpdate":"config_option_update"', ["edited"]],
]) {
  test(`an agent that forgets ${forgotten} is found out`, limit, async () => {
    const tale = await tell([join(clients, "forgetful.sh"), forgotten, ...turnery]);
    const differ = Object.keys(expected).filter(
      (part) => !isDeepStrictEqual(tale[part], expected[part]),
    );
    assert.deepEqual(differ, missed);
  });
}
