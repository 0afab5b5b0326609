// The package as Node loads it gives the plans that the command line gives.

import assert from "node:assert/strict";
import test from "node:test";
import { plan } from "@bindery/preview";
import { cases } from "./cases.mjs";

test("what is no string is refused by name, and the next plan is made", async () => {
  const stack = "name: x\nruntime: yaml\n";
  await assert.rejects(plan(undefined), { name: "TypeError", message: /the stack file must be a string/ });
  await assert.rejects(plan(stack, { state: {} }), { name: "TypeError", message: /`state` must be a string, not of the type object/ });
  await assert.rejects(plan(stack, { config: { project: 1 } }), { name: "TypeError", message: /key `project`/ });
  assert.deepEqual((await plan(stack)).errors, []);
});

test("every plan is the command line's", async () => {
  const all = cases();
  assert.ok(all.length > 100);
  for (const { name, stack, state, config, expected } of all) {
    assert.deepEqual(await plan(stack, { state, config }), expected, name);
  }
});
