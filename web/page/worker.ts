// Plans beside the page's own thread. It gets the modules once, and one request after the other.

import { instantiate, type Modules, type PlanText } from "../src/engine.js";
import type { Plan } from "../src/plan.js";
import { view, type View } from "./view.js";

/** What the page asks. */
export type Question =
  | { modules: { planner: Modules; preview: Modules } }
  | { number: number; stack: string; state: string | undefined; config: [string, string][] }
  | "document";

/** What it is told: what is shown, and the whole document where it asks for that. */
export type Answer = { number: number; view: View } | { number: number; brokeDown: string } | { document: string };

let planText: Promise<PlanText> | undefined;

/** The last plan. */
let last = "";

self.addEventListener("message", async ({ data }: MessageEvent<Question>) => {
  if (data === "document") {
    self.postMessage({ document: last } satisfies Answer);
    return;
  }
  if ("modules" in data) {
    planText = instantiate(data.modules);
    return;
  }
  const { number, stack, state, config } = data;
  try {
    last = (await planText)?.(stack, state, config) ?? "";
    self.postMessage({ number, view: view(JSON.parse(last) as Plan) } satisfies Answer);
  } catch (error) {
    self.postMessage({ number, brokeDown: String(error) } satisfies Answer);
  }
});
