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
 * @throws Error when planning itself breaks down, as for want of memory.
 */
export async function plan(stackYaml: string, options: PlanOptions = {}): Promise<Plan> {
  loaded ??= instantiate({ planner, preview });
  const planText = await loaded;
  try {
    return JSON.parse(planText(stackYaml, options.state, Object.entries(options.config ?? {}))) as Plan;
  } catch (error) {
    // An instance that has stopped in the middle is not to be used again.
    loaded = undefined;
    throw new Error(`planning broke down: ${String(error)}`, { cause: error });
  }
}
