// The two components, put together: planning asks the planner, and neither asks anything else.

import { instantiate as instantiatePlanner } from "./generated/planner.js";
import { instantiate as instantiatePreview } from "./generated/preview.js";

/** The core modules of a component by file name, each as a text of one character for each byte. */
export type Modules = Record<string, string>;

/** Plans: a stack file, a state document, configuration keys; gives the JSON document of the plan. */
export type PlanText = (stack: string, state: string | undefined, config: [string, string][]) => string;

/** Compiles modules when they are asked for. */
function compiler(modules: Modules): (path: string) => Promise<WebAssembly.Module> {
  return (path) => {
    const text = modules[path] ?? "";
    const bytes = Uint8Array.from(text, (character) => character.charCodeAt(0));
    return WebAssembly.compile(bytes);
  };
}

/** An instance of both. One that has failed is not to be used again. */
export async function instantiate(modules: { planner: Modules; preview: Modules }): Promise<PlanText> {
  // Types alone are imported by the planner: it gets nothing.
  const planner = await instantiatePlanner(compiler(modules.planner), {} as never);
  // Imports are asked for without their versions.
  const interfaces = Object.entries(planner).map(([id, functions]) => [id.replace(/@.*/, ""), functions]);
  const preview = await instantiatePreview(compiler(modules.preview), Object.fromEntries(interfaces));
  return preview.plan;
}
