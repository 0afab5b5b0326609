// Plans beside the page's own thread. It is told once where the modules are, and loads them itself: they are too much for the page.

import { instantiate, type Modules, type PlanText } from "../src/engine.js";
import type { Plan } from "../src/plan.js";
import { view, type View } from "./view.js";

/** What the page asks. */
export type Question =
  | { modules: { planner: string; preview: string } }
  | { number: number; stack: string; state: string | undefined; config: [string, string][] }
  | "document";

/** What it is told: what is shown, and the whole document where it asks for that. */
export type Answer = { number: number; view: View } | { number: number; brokeDown: string } | { document: string };

let planText: Promise<PlanText> | undefined;

/** The last plan. */
let last = "";

async function load(addresses: { planner: string; preview: string }): Promise<PlanText> {
  const modules = async (address: string): Promise<Modules> => ((await import(/* @vite-ignore */ address)) as { default: Modules }).default;
  const [planner, preview] = await Promise.all([modules(addresses.planner), modules(addresses.preview)]);
  return instantiate({ planner, preview });
}

self.addEventListener("message", async ({ data }: MessageEvent<Question>) => {
  if (data === "document") {
    if (last !== "") self.postMessage({ document: last } satisfies Answer);
    return;
  }
  if ("modules" in data) {
    planText = load(data.modules);
    // What is wrong with it is said with the first plan.
    planText.catch(() => {});
    return;
  }
  const { number, stack, state, config } = data;
  try {
    last = "";
    last = (await planText)?.(stack, state, config) ?? "";
    self.postMessage({ number, view: view(JSON.parse(last) as Plan) } satisfies Answer);
  } catch (error) {
    self.postMessage({ number, brokeDown: String(error) } satisfies Answer);
  }
});
