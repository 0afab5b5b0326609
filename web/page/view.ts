// What a page shows of a plan: as much as a person reads. Made in the worker, so that a plan of ten thousand resources costs the page
// no more than one of a hundred.

import type { Action, Message, Plan, Resource, Value } from "../src/plan.js";

/** How many resources are shown; the others are counted. */
const RESOURCES = 200;

/** How many entries of a list or lines of a resource are shown. */
const LINES = 50;

/** How many messages are shown. */
const MESSAGES = 100;

/** How many characters of a text are shown. */
const CHARACTERS = 400;

/** A property of a resource, and what becomes of it. */
export interface Line {
  sign: "" | "+" | "-" | "~";
  path: string;
  /** What exists, where something does. */
  old?: string;
  /** What is declared. */
  new?: string;
  note?: string;
}

/** A resource that something is done to. */
export interface Shown {
  action: Action;
  name: string;
  type: string;
  note?: string;
  lines: Line[];
  more: number;
}

/** What is shown. */
export interface View {
  counts: [Action, number][];
  resources: Shown[];
  /** How many more there are that something is done to. */
  more: number;
  outputs: Line[];
  warnings: Message[];
  errors: Message[];
  moreErrors: number;
}

function short(text: string): string {
  return text.length > CHARACTERS ? `${text.slice(0, CHARACTERS)}… (${text.length} characters)` : text;
}

function shown(value: Value | undefined, isUnknown = false): string {
  if (isUnknown) return "known once it exists";
  if (value === undefined || value === null) return "(none)";
  return short(JSON.stringify(value));
}

function message(found: Message): Message {
  return { ...found, message: short(found.message), ...(found.hint === undefined ? {} : { hint: short(found.hint) }) };
}

function changed(resource: Resource): Line[] {
  const unknown = new Set(resource.unknown);
  return (resource.changes ?? []).flatMap((change): Line[] => {
    const path = change.path;
    const note = change.replaces ? "replaces" : "";
    if (Array.isArray(change.old) && Array.isArray(change.new)) {
      const [old, next] = [change.old, change.new].map((list) => list.map((item) => shown(item))) as [string[], string[]];
      const [olds, news] = [new Set(old), new Set(next)];
      const gone = old.filter((item) => !news.has(item)).map((item): Line => ({ sign: "-", path, old: item, note }));
      const come = next.filter((item) => !olds.has(item)).map((item): Line => ({ sign: "+", path, new: item, note }));
      const both = [...gone, ...come];
      if (both.length > 0) return both;
    }
    return [{ sign: "~", path, old: shown(change.old), new: shown(change.new, unknown.has(path)), note }];
  });
}

function declared(resource: Resource): Line[] {
  const unknown = new Set(resource.unknown);
  return Object.entries(resource.inputs ?? {}).flatMap(([path, value]): Line[] => {
    if (Array.isArray(value)) return value.map((item, index) => ({ sign: "+", path, new: shown(item, unknown.has(`${path}[${index}]`)) }));
    return [{ sign: "+", path, new: shown(value, unknown.has(path)) }];
  });
}

function resource(found: Resource): Shown {
  const lines = found.action === "create" || found.action === "import" ? declared(found) : changed(found);
  const note = found.action === "import" ? `adopted: ${short(found.id ?? "")}` : found.action === "forget" ? "stays as it is, and is no longer this stack's" : undefined;
  return {
    action: found.action,
    name: short(found.name),
    type: short(found.type),
    ...(note === undefined ? {} : { note }),
    lines: lines.slice(0, LINES),
    more: Math.max(0, lines.length - LINES),
  };
}

/** What is shown of a plan. */
export function view(plan: Plan): View {
  const all = plan.resources ?? [];
  const counts = new Map<Action, number>();
  for (const { action } of all) counts.set(action, (counts.get(action) ?? 0) + 1);
  const done = all.filter(({ action }) => action !== "same");
  const unknown = new Set(plan.unknownOutputs);
  const outputs = Object.entries(plan.outputs ?? {}).map(([path, value]): Line => ({ sign: "", path: short(path), new: shown(value, unknown.has(path)) }));
  return {
    counts: [...counts],
    resources: done.slice(0, RESOURCES).map(resource),
    more: Math.max(0, done.length - RESOURCES),
    outputs: outputs.slice(0, LINES),
    warnings: plan.warnings.slice(0, MESSAGES).map(message),
    errors: plan.errors.slice(0, MESSAGES).map(message),
    moreErrors: Math.max(0, plan.errors.length - MESSAGES),
  };
}
