// Runs the turnery binary with the model of a server, in a home and a folder of its own.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const HELLO = "the code word is heron\n";

/** A home folder with a project that has one file; `remove` deletes both. */
export function createHome(name) {
  const home = realpathSync(mkdtempSync(join(tmpdir(), `turnery-${name}-`)));
  mkdirSync(join(home, "project"));
  mkdirSync(join(home, "turnery"));
  writeFileSync(join(home, "project/hello.txt"), HELLO);
  return { home, remove: () => rmSync(home, { recursive: true, force: true }) };
}

/** Time after which a run is ended. Unit: milliseconds. */
const TIMEOUT = 150_000;

/** Runs turnery with these arguments and variables; returns its exit code and output. */
export function turnery(home, args, { env = {}, input = "" } = {}) {
  return new Promise((resolve) => {
    const options = {
      cwd: join(home, "project"),
      env: {
        PATH: process.env.PATH,
        HOME: home,
        TURNERY_HOME: join(home, "turnery"),
        TURNERY_LOCAL_SERVERS: "off",
        ...env,
      },
      timeout: TIMEOUT,
      killSignal: "SIGKILL",
      maxBuffer: 64 << 20,
    };
    const child = execFile(process.env.TURNERY, args, options, (error, stdout, stderr) =>
      resolve({ code: child.exitCode, stdout, stderr }),
    );
    // A program that ends early does not read its input.
    child.stdin.on("error", () => {});
    child.stdin.end(input);
  });
}

/** Runs a prompt; also returns the events by name, and the result, which comes last. */
export async function run(home, model, args, options) {
  const ran = await turnery(home, ["run", "--model", model, "--format", "stream-json", ...args], options);
  const lines = ran.stdout.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
  const named = (name) => lines.filter((line) => line.event === name);
  return { ...ran, named, result: lines.at(-1) };
}

/** Texts of the deltas of this type, in order. */
export const deltasOf = (named, type) =>
  named("delta").flatMap(({ delta }) => (delta.type === type ? [delta.text] : []));
