// What a stack file would do, decided by the engine's own code.

import { instantiate, type PlanText } from "./engine.js";
import planner from "./generated/planner.modules.js";
import preview from "./generated/preview.modules.js";
import type { Plan } from "./plan.js";

export type { Action, Change, Message, Plan, Resource, Value } from "./plan.js";

/** What is planned beside the stack file. */
export interface PlanOptions {
  /** The state of the stack, as `bindery state export` prints it; without one, nothing exists. */
  state?: string | undefined;
  /** Configuration keys, as they are given to `bindery preview --config KEY=VALUE`. */
  config?: Record<string, string> | undefined;
}

let loaded: Promise<PlanText> | undefined;

/**
 * Plans a stack. What is wrong with it is in the plan's `errors`; nothing is sent anywhere.
 *
 * @throws TypeError when something of what is planned is no string.
 * @throws Error when planning itself breaks down, as for want of memory.
 */
export async function plan(stackYaml: string, options: PlanOptions = {}): Promise<Plan> {
  const config = Object.entries(options?.config ?? {});
  const state = options?.state;
  isText("the stack file", stackYaml);
  if (state !== undefined) isText("`state`", state);
  for (const [key, value] of config) isText(`the key \`${key}\` of \`config\``, value);
  for (;;) {
    const mine = (loaded ??= instantiate({ planner, preview }));
    try {
      const planText = await mine;
      // Another call's plan broke down meanwhile, and this instance with it.
      if (loaded !== mine) continue;
      return JSON.parse(planText(stackYaml, state, config)) as Plan;
    } catch (error) {
      // An instance that has stopped in the middle is not to be used again.
      if (loaded === mine) loaded = undefined;
      throw new Error(`planning broke down: ${String(error)}`, { cause: error });
    }
  }
}

function isText(what: string, value: unknown): asserts value is string {
  if (typeof value !== "string") throw new TypeError(`${what} must be a string, not ${value === null ? "null" : `of the type ${typeof value}`}`);
}
