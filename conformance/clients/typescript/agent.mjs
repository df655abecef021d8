// Starts the agent under test, hands its pipes to the official client, and keeps every line it writes.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/unstable";
import Ajv from "ajv/dist/2020.js";

// The official schemas, as the SDK's package ships them.
const sdk = dirname(createRequire(import.meta.url).resolve("@agentclientprotocol/sdk"));
const ajv = new Ajv({ strict: false, validateFormats: false });
const definitions = ["schema", "schema.unstable"].flatMap((name) => {
  const file = join(sdk, `../../../schema/v1/${name}.json`);
  const schema = JSON.parse(readFileSync(file, "utf8"));
  ajv.addSchema(schema, name);
  return Object.entries(schema.$defs).map(([key, definition]) => ({
    method: definition["x-method"],
    key,
    at: `${name}#/$defs/${key}`,
  }));
});
/** The stable definition if there is one: `session/fork` is only in the unstable schema. */
const definitionOf = (method, ending) => {
  const found = definitions.find((one) => one.method === method && one.key.endsWith(ending));
  if (!found) throw new Error(`the schemas have no ${ending} of ${method}`);
  return ajv.getSchema(found.at);
};

const running = new Set();

/** End those whose test failed before their end. */
export function endAll() {
  for (const child of running) {
    child.stdin.destroy();
    child.kill();
  }
}

/** A server of models that happens to run on this machine would be in the list of models: nobody answers at port 1. */
const noLocalServers = Object.fromEntries(
  ["LLAMACPP_BASE_URL", "LMSTUDIO_BASE_URL", "OLLAMA_HOST", "VLLM_BASE_URL"].map((name) => [name, "http://127.0.0.1:1/v1"]),
);

/** One agent process. `lines` holds every message it wrote, in order; each was valid when it came. */
export class Agent {
  static start([program, ...args], home) {
    const child = spawn(program, args, {
      env: { PATH: process.env.PATH, HOME: home, TURNERY_HOME: join(home, "turnery"), ...noLocalServers },
      stdio: ["pipe", "pipe", "pipe"],
    });
    return new Agent(child);
  }

  constructor(child) {
    this.child = child;
    this.lines = [];
    this.faults = [];
    this.errors = "";
    this.asked = new Map();
    this.exited = once(child, "exit");
    running.add(child);
    child.on("exit", () => running.delete(child));
    child.stderr.on("data", (data) => (this.errors += data));
    const tap = (direction) => {
      let rest = "";
      const decoder = new TextDecoder("utf-8", { fatal: true });
      return new TransformStream({
        transform: (chunk, controller) => {
          rest += decoder.decode(chunk, { stream: true });
          const lines = rest.split("\n");
          rest = lines.pop();
          for (const line of lines) direction(line);
          controller.enqueue(chunk);
        },
      });
    };
    const output = tap((line) => this.wrote(line));
    const input = tap((line) => this.read(line));
    input.readable.pipeTo(Writable.toWeb(child.stdin)).catch(() => {});
    this.stream = acp.ndJsonStream(
      input.writable,
      Readable.toWeb(child.stdout).pipeThrough(output),
    );
  }

  // What the client sends: only remembered, to know which answer belongs to which method.
  read(line) {
    const message = JSON.parse(line);
    if (message.method !== undefined && message.id !== undefined) {
      this.asked.set(JSON.stringify(message.id), message.method);
    }
  }

  wrote(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch {
      this.faults.push(`not JSON: ${line}`);
      return;
    }
    this.lines.push(message);
    if (message.jsonrpc !== "2.0") this.faults.push(`no jsonrpc version: ${line}`);
    let valid;
    let value;
    if (message.method !== undefined) {
      const ending = message.id === undefined ? "Notification" : "Request";
      valid = definitionOf(message.method, ending);
      value = message.params;
    } else if (message.result !== undefined) {
      valid = definitionOf(this.asked.get(JSON.stringify(message.id)), "Response");
      value = message.result;
    } else {
      valid = ajv.getSchema("schema#/$defs/Error");
      value = message.error;
    }
    if (!valid(value)) this.faults.push(`${ajv.errorsText(valid.errors)}: ${line}`);
  }

  /** Close stdin and wait for the end: exit code 0, by itself. */
  async end() {
    if (!this.child.stdin.writableEnded) this.child.stdin.end();
    const [code, signal] = await this.exited;
    return { code, signal };
  }
}
