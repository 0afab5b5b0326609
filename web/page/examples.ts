// What a visitor starts from: cases of the table that every engine has to agree on.

import changedState from "../cases/updated.state.json?raw";
import changed from "../cases/updated.yaml?raw";
import references from "../cases/not_known_yet.yaml?raw";
import referencesConfig from "../cases/not_known_yet.config.json";
import replacedState from "../cases/replaced.state.json?raw";
import replaced from "../cases/replaced.yaml?raw";
import grants from "../../examples/grants.yaml?raw";

/** A stack, and what there is beside it. */
export interface Example {
  name: string;
  stack: string;
  state?: string;
  config?: Record<string, string>;
}

/** The examples; the page begins with the first. */
export const examples: Example[] = [
  { name: "Three grants", stack: grants },
  { name: "Members change", stack: changed, state: changedState },
  { name: "A grant is replaced", stack: replaced, state: replacedState },
  { name: "References and keys", stack: references, config: referencesConfig },
];
