// Starts the agent under test, hands its pipes to the official client, and keeps every line it writes.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import Ajv from "ajv/dist/2020.js";

const here = dirname(fileURLToPath(import.meta.url));
export const scenario = join(here, "../../scenarios/main-job.json");
const binary = process.env.TURNERY;
if (!binary) throw new Error("set TURNERY to the path of the turnery binary");

// The official schema, as the SDK's package ships it.
const sdk = dirname(createRequire(import.meta.url).resolve("@agentclientprotocol/sdk"));
const schema = JSON.parse(readFileSync(join(sdk, "../../../schema/v1/schema.json"), "utf8"));
const ajv = new Ajv({ strict: false, validateFormats: false });
ajv.addSchema(schema, "acp");
const definitions = Object.entries(schema.$defs);
const definitionOf = (method, ending) => {
  const found = definitions.find(([name, d]) => d["x-method"] === method && name.endsWith(ending));
  if (!found) throw new Error(`the schema has no ${ending} of ${method}`);
  return ajv.getSchema(`acp#/$defs/${found[0]}`);
};

/** One agent process. `lines` holds every message it wrote, in order; each was valid when it came. */
export class Agent {
  static start(home, args = []) {
    const child = spawn(binary, ["acp", "--model", `scripted:${scenario}`, ...args], {
      env: { PATH: process.env.PATH, HOME: home, TURNERY_HOME: join(home, "turnery") },
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
      valid = ajv.getSchema("acp#/$defs/Error");
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
