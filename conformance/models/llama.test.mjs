// A real model on a real server: SmolLM2 with 135 million parameters on llama.cpp's server, without a network. The model
// is too small to be right; what it writes is streamed, and the server's grammar makes its calls valid.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { HELLO, createHome, deltasOf, run, turnery } from "./turnery.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const MODEL = "llamacpp/smollm2";
const CONTEXT_WINDOW = 4096;
const PROMPT = 'Say "A grey heron stands still."';
/** Time that the server may take to load the model. Unit: milliseconds. */
const START_TIMEOUT = 120_000;

const { home, remove } = createHome("llama");
const log = join(home, "server.log");
const limit = { timeout: 200_000 };
let server;
let address;
let env;

before(async () => {
  const output = openSync(log, "w");
  server = spawn(join(process.env.LLAMA_VENV, "bin/python"), [join(here, "llama.py"), String(CONTEXT_WINDOW)], {
    // Adds the parameters of the last request to `/slots`.
    env: { PATH: process.env.PATH, HOME: home, LLAMA_SERVER_SLOTS_DEBUG: "1" },
    stdio: ["pipe", "pipe", output],
  });
  closeSync(output);
  // Responses end soon, whatever the model writes.
  writeFileSync(join(home, "turnery/config.toml"), `[models."${MODEL}"]\nmax_output = 150\n`);
  writeFileSync(
    join(home, "risk.json"),
    JSON.stringify({
      type: "object",
      properties: { risk: { enum: ["low", "high"] } },
      required: ["risk"],
      additionalProperties: false,
    }),
  );
  const late = setTimeout(() => server.kill("SIGKILL"), START_TIMEOUT).unref();
  const ended = once(server, "exit").then(([code, signal]) => {
    throw new Error(`the server ended with ${signal ?? code}: ${readFileSync(log, "utf8").slice(-4000)}`);
  });
  [address] = await Promise.race([once(createInterface(server.stdout), "line"), ended]);
  clearTimeout(late);
  env = { LLAMACPP_BASE_URL: `${address}/v1` };
});
after(() => server?.kill("SIGKILL"));
after(remove);

test("the model is listed with its window and is the default", limit, async () => {
  const { code, stdout, stderr } = await turnery(home, ["models", "--json"], { env });
  assert.equal(code, 0, stderr);
  const row = JSON.parse(stdout).find(({ name }) => name === MODEL);
  assert.deepEqual([row?.ready, row?.default, row?.context_window], [true, true, CONTEXT_WINDOW]);
});

test("text is streamed", limit, async () => {
  const { code, named, result, stderr } = await run(home, MODEL, [PROMPT], { env });
  assert.equal(code, 0, stderr);
  const deltas = deltasOf(named, "text");
  assert.ok(deltas.length > 1, `${deltas.length} deltas`);
  assert.equal(deltas.join(""), result.text);
  assert.match(result.text, /heron/i);
  // The model has not more tokens than the text has bytes.
  assert.ok(result.usage.output >= deltas.length && result.usage.output <= result.text.length, result.usage);
  assert.ok(result.usage.input > 1000, result.usage);
});

test("a call runs and the next request keeps its prefix", limit, async () => {
  const prompt = 'Use `read_file` to read "hello.txt".';
  const { named, result } = await run(home, MODEL, [prompt], { env });
  const [{ call }] = named("tool_call_requested");
  assert.deepEqual([call.name, call.args.path], ["read_file", "hello.txt"]);
  const [{ disposition, envelope }] = named("tool_execution_end");
  assert.equal(disposition, "executed");
  assert.ok(JSON.stringify(envelope.result.Ok).includes(HELLO.trim()), envelope);
  // The server counts as cached what it already has: everything before the prompt, which the template writes anew.
  const [first, second] = named("usage_reported").map(({ usage }) => usage);
  assert.ok(second.cache_read > 0.8 * (first.input + first.cache_read) && second.input < 300, [first, second]);
  assert.ok(result.turns >= 2);
});

test("a forced call has arguments that fit the schema", limit, async () => {
  const args = ["--output-schema", join(home, "risk.json"), PROMPT];
  const { code, named, result, stderr } = await run(home, MODEL, args, { env });
  assert.equal(code, 0, stderr);
  assert.ok(["low", "high"].includes(result.value.risk), result.value);
  // Prose was not accepted, so the second request forced a call.
  assert.equal(result.turns, 2);
  assert.ok(deltasOf(named, "text").length > 0);
  assert.deepEqual(named("tool_execution_end").map(({ tool_name }) => tool_name), ["finish"]);
  // A grammar that is not lazy holds from the first token; this one allows no response without a call.
  const [{ params }] = await (await fetch(`${address}/slots`)).json();
  assert.equal(params.grammar_lazy, false);
  assert.match(params.grammar, /^root ::= "<\|im_start\|>assistant/m);
});

test("a prompt longer than the window is explained", limit, async () => {
  const input = "word ".repeat(2 * CONTEXT_WINDOW);
  const { code, result, stderr } = await run(home, MODEL, [], { env, input });
  assert.deepEqual([code, result.outcome], [4, "provider_error"]);
  assert.match(stderr, /longer than smollm2 can take in/);
  assert.match(stderr, /exceeds the available context size \(4096 tokens\)/);
});
