// The components under hosts that are not this project's: the provider with its HTTP under jco in Node, the planner under wasmtime's
// Python package.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import test from "node:test";
import { transpile } from "@bytecodealliance/jco";
import { plan } from "@bindery/preview";
import { compile, planner } from "../scripts/compile.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const INPUTS = { name: "projects/home/global/backendBuckets/logs", role: "roles/compute.viewer", member: "user:Ann@example.com" };

test("the planner checks the same under wasmtime in Python", async () => {
  const environment = `${root}target/wasmtime-python`;
  if (!existsSync(`${environment}/bin/python`)) execFileSync("python3", ["-m", "venv", environment]);
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", `${root}web/test/hosts/requirements.txt`];
  execFileSync(`${environment}/bin/python`, pip, { stdio: "inherit" });
  const script = [`${root}web/test/hosts/planner.py`, planner(), JSON.stringify(INPUTS)];
  const { imports, checked } = JSON.parse(execFileSync(`${environment}/bin/python`, script).toString());
  assert.deepEqual(imports, ["bindery:engine/types@1.0.0", "bindery:iam/types@1.0.0"], "types alone");
  const resource = Object.entries(INPUTS).map(([name, value]) => `      ${name}: ${JSON.stringify(value)}`).join("\n");
  const stack = `name: hosts\nruntime: yaml\nresources:\n  one:\n    type: bindery:compute/v1:BackendBucketIamMember\n    properties:\n${resource}\n`;
  const [planned] = (await plan(stack)).resources;
  assert.deepEqual({ ...checked.args }, { ...planned.inputs, condition: null });
  assert.equal(checked.id, planned.id);
  assert.match(checked.footprint.target, /backendBuckets\/logs$/);
});

test("the provider grants, reads and takes away under jco in Node", async () => {
  const folder = `${root}web/node_modules/.bindery-hosts/`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const { files } = await transpile(readFileSync(compile("bindery-provider", "wasm32-wasip2")), { name: "provider" });
  for (const [file, contents] of Object.entries(files)) {
    if (!file.endsWith(".d.ts")) writeFileSync(folder + file, contents);
  }
  writeFileSync(`${folder}package.json`, '{"type": "module"}');
  const { backendBucketIamMember: bucket } = await import(pathToFileURL(`${folder}provider.js`).href);

  // The workspace's tests have built it already.
  const bindery = `${root}target/debug/bindery`;
  if (!existsSync(bindery)) execFileSync("cargo", ["build", "--quiet", "--locked", "--workspace"], { cwd: root, stdio: "inherit" });
  const emulator = spawn(bindery, ["emulator", "--port", "0", "--json"], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const said = [];
    for await (const line of createInterface(emulator.stdout)) {
      said.push(line);
      if (/http:\/\/127/.test(line)) break;
    }
    const [origin] = /http:\/\/127\.0\.0\.1:\d+/.exec(said.join("\n"));
    const config = { computeEndpoint: origin };
    const policy = async () => (await fetch(`${origin}/emulator/policies`)).text();
    const state = bucket.create(config, { ...INPUTS, condition: undefined, project: undefined });
    assert.equal(state.id, `${INPUTS.name}/roles/compute.viewer/user:ann@example.com`);
    assert.ok((await policy()).includes(INPUTS.member), await policy());
    assert.deepEqual(bucket.read(config, state.id, undefined), state);
    bucket.delete(config, state);
    assert.ok(!(await policy()).includes(INPUTS.member), await policy());
    assert.equal(bucket.read(config, state.id, undefined), undefined);
  } finally {
    emulator.kill();
  }
});
