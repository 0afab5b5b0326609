// The document of a plan: that of `bindery preview --json`, as far as it is about the plan.

/** Any JSON value. */
export type Value = null | boolean | number | string | Value[] | { [name: string]: Value };

/** What is done with a resource. */
export type Action = "create" | "import" | "update" | "replace" | "same" | "delete" | "forget";

/** One property that differs. */
export interface Change {
  /** Where: `role`, `condition.title`, `members[2]`. */
  path: string;
  /** What exists; null where there is nothing. */
  old: Value;
  /** What is declared; null where that is nothing, or not known yet. */
  new: Value;
  /** The resource has to be replaced for it. */
  replaces: boolean;
}

/** One resource. */
export interface Resource {
  name: string;
  urn: string;
  type: string;
  action: Action;
  status: "planned";
  /** Where it is known. */
  id?: string;
  inputs?: { [name: string]: Value };
  /** The paths of inputs that are not known yet. */
  unknown?: string[];
  /** For what is updated or replaced. */
  changes?: Change[];
  /** Of a replacement: how the old one goes. Absent where it is deleted after the new one is made. */
  oldOne?: "deletedFirst" | "stays";
  /** The name that it had before. */
  was?: string;
  /** URNs. */
  dependencies?: string[];
}

/** A warning, or what is wrong. */
export interface Message {
  message: string;
  /** The one thing to try. */
  hint?: string;
  resource?: string;
  /** Which of the resource's properties. */
  path?: string;
  /** In the stack file, from 1. */
  line?: number;
  /** In characters, from 1. */
  column?: number;
}

/** A plan, or what is wrong. */
export interface Plan {
  project?: string;
  stack?: string;
  /** In the order in which they are done; absent where something is wrong. */
  resources?: Resource[];
  /** What the stack gives to others, as far as it is known. */
  outputs?: { [name: string]: Value };
  /** The paths of outputs that are not known yet. */
  unknownOutputs?: string[];
  warnings: Message[];
  errors: Message[];
}
