// Checks the requests that the Rust tests have recorded against the types of the official SDKs. Object literals must not
// have members that the types lack, so a wrong name is an error as well as a wrong value.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
// Below node_modules, so that the packages are found, and git ignores the files.
const generated = join(here, "node_modules/.requests");
const recorded = process.env.MODEL_REQUESTS;
assert.ok(recorded, "MODEL_REQUESTS names the folder with the recorded requests");

// Members whose texts are words of the API; other texts are content.
const words = new Set(["type", "role", "mode", "effort", "summary", "detail", "phase", "format", "display", "status"]);

/** Returns what the type of a value depends on: members, words, and the different items of lists. */
function shape(value, name) {
  if (Array.isArray(value)) return [...new Set(value.map((item) => JSON.stringify(shape(item, name))))];
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shape(inner, name)]));
  }
  return words.has(name) ? value : typeof value;
}

/** Returns recorded requests of a format, one of each shape. */
function requests(format) {
  const found = new Map();
  for (const name of readdirSync(recorded).filter((name) => name.startsWith(`${format}-`)).sort()) {
    const body = JSON.parse(readFileSync(join(recorded, name), "utf8"));
    found.set(JSON.stringify(shape(body)), body);
  }
  return [...found.values()];
}

/** Returns the errors of the compiler about requests, which are values of the type `type`. */
function errors(type, bodies) {
  const name = `${type}-${bodies.length}.ts`;
  const values = bodies.map((body, i) => `export const request${i}: ${type} = ${JSON.stringify(body)};\n`);
  mkdirSync(generated, { recursive: true });
  const file = join(generated, name);
  writeFileSync(file, `import type { ${type} } from "../../types.js";\n${values.join("")}`);
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2023", "--pretty", "false"];
  const modules = ["--module", "nodenext", "--moduleResolution", "nodenext", "--types", ""];
  const tsc = join(here, "node_modules/typescript/bin/tsc");
  const run = spawnSync(process.execPath, [tsc, ...options, ...modules, file], { cwd: here, encoding: "utf8" });
  assert.equal(run.error, undefined);
  rmSync(file);
  return run.status === 0 ? "" : `${run.stdout}${run.stderr}`.slice(0, 4000) || `tsc ended with ${run.status}`;
}

// Formats with their types, the least number of shapes to expect, and changes that the SDK must refuse.
const formats = [
  ["anthropic", "AnthropicRequest", 100, [
    (body) => { body.max_output_tokens = 1; },
    (body) => { body.messages[0].content[0].type = "input_text"; },
    (body) => { delete body.max_tokens; },
  ]],
  ["chat", "ChatRequest", 60, [
    (body) => { body.max_output_tokens = 1; },
    (body) => { body.messages[0].role = "model"; },
    (body) => { body.tools = [{ type: "function", name: "read" }]; },
  ]],
  ["responses", "ResponsesRequest", 40, [
    (body) => { body.max_tokens = 1; },
    (body) => { body.input[0].content[0].type = "text"; },
    (body) => { body.include = ["reasoning"]; },
  ]],
  ["gemini", "GeminiRequest", 40, [
    (body) => { body.generationConfig = { max_output_tokens: 1 }; },
    (body) => { body.contents[0].parts[0].type = "text"; },
    (body) => { body.toolConfig = { functionCallingConfig: { mode: "none" } }; },
  ]],
];

for (const [format, type, fewest, changes] of formats) {
  test(`${format}: recorded requests have the type of the SDK`, () => {
    const bodies = requests(format);
    assert.ok(bodies.length >= fewest, `${bodies.length} shapes`);
    assert.equal(errors(type, bodies), "");
  });
  test(`${format}: wrong requests have not`, () => {
    for (const change of changes) {
      const body = requests(format).find((body) => {
        try {
          change(body);
          return true;
        } catch {
          // The changed place does not exist, or holds a text.
          return false;
        }
      });
      assert.ok(body, `no request to change: ${change}`);
      assert.match(errors(type, [body]), /error TS/, String(change));
    }
  });
}
