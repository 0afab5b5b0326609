// The package as Node loads it gives the plans that the command line gives.

import assert from "node:assert/strict";
import test from "node:test";
import { plan } from "@bindery/preview";
import { cases } from "./cases.mjs";

test("every plan is the command line's", async () => {
  const all = cases();
  assert.ok(all.length > 100);
  for (const { name, stack, state, config, expected } of all) {
    assert.deepEqual(await plan(stack, { state, config }), expected, name);
  }
});
