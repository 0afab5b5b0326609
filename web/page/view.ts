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
  moreOutputs: number;
  warnings: Message[];
  errors: Message[];
  moreErrors: number;
  moreWarnings: number;
}

function short(text: string): string {
  return text.length > CHARACTERS ? `${text.slice(0, CHARACTERS)}… (${text.length} characters)` : text;
}

/** What is not known yet, as a person reads it. */
const UNKNOWN = "known once it exists";

/** A value as it is written in JSON, whole; what is not known says so wherever it is. */
function written(value: Value | undefined, path: string, unknown: Set<string>): string {
  if (unknown.has(path)) return UNKNOWN;
  if (Array.isArray(value)) return `[${value.map((item, index) => written(item, `${path}[${index}]`, unknown)).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    const fields = Object.entries(value).map(([name, field]) => `${JSON.stringify(name)}: ${written(field, `${path}.${name}`, unknown)}`);
    return `{${fields.join(", ")}}`;
  }
  return JSON.stringify(value ?? null);
}

function shown(value: Value | undefined, path: string, unknown: Set<string>): string {
  if ((value === undefined || value === null) && !unknown.has(path)) return "(none)";
  return short(written(value, path, unknown));
}

/** Nothing is not known of what exists. */
const ALL_KNOWN = new Set<string>();

/** The entries of one list that the other has not, or not as often. */
function without(entries: string[], others: string[]): string[] {
  const left = new Map<string, number>();
  for (const other of others) left.set(other, (left.get(other) ?? 0) + 1);
  return entries.filter((entry) => {
    const count = left.get(entry) ?? 0;
    left.set(entry, count - 1);
    return count <= 0;
  });
}

function message(found: Message): Message {
  const cut = (text: string | undefined, name: "hint" | "resource" | "path") => (text === undefined ? {} : { [name]: short(text) });
  return { ...found, message: short(found.message), ...cut(found.hint, "hint"), ...cut(found.resource, "resource"), ...cut(found.path, "path") };
}

function changed(resource: Resource): Line[] {
  const unknown = new Set(resource.unknown);
  return (resource.changes ?? []).flatMap((change): Line[] => {
    const path = short(change.path);
    const note = change.replaces ? "replaces" : "";
    if (Array.isArray(change.old) && Array.isArray(change.new)) {
      const old = change.old.map((item) => written(item, "", ALL_KNOWN));
      const next = change.new.map((item, index) => written(item, `${change.path}[${index}]`, unknown));
      const gone = without(old, next).map((item): Line => ({ sign: "-", path, old: short(item), note }));
      const come = without(next, old).map((item): Line => ({ sign: "+", path, new: short(item), note }));
      const both = [...gone, ...come];
      if (both.length > 0) return both;
    }
    return [{ sign: "~", path, old: shown(change.old, change.path, ALL_KNOWN), new: shown(change.new, change.path, unknown), note }];
  });
}

/** All properties of a resource that comes or goes, each entry of a list on a line of its own. */
function whole(resource: Resource, sign: "+" | "-"): Line[] {
  const unknown = new Set(resource.unknown);
  const line = (path: string, text: string): Line => ({ sign, path: short(path), ...(sign === "+" ? { new: text } : { old: text }) });
  return Object.entries(resource.inputs ?? {}).flatMap(([path, value]): Line[] => {
    if (Array.isArray(value)) return value.map((item, index) => line(path, shown(item, `${path}[${index}]`, unknown)));
    return [line(path, shown(value, path, unknown))];
  });
}

function notes(found: Resource): string[] {
  const all: string[] = [];
  if (found.was !== undefined) all.push(`was ${short(found.was)}`);
  if (found.action === "import") all.push(`adopted: ${short(found.id ?? "")}`);
  if (found.action === "forget") all.push("stays as it is, and is no longer this stack's");
  if (found.oldOne === "stays") all.push("the old one stays as it is");
  if (found.oldOne === "deletedFirst") all.push("deleted first");
  return all;
}

function resource(found: Resource): Shown {
  const comes = found.action === "create" || found.action === "import";
  const goes = found.action === "delete" || found.action === "forget";
  const lines = comes ? whole(found, "+") : goes ? whole(found, "-") : changed(found);
  const note = notes(found).join("; ");
  return {
    action: found.action,
    name: short(found.name),
    type: short(found.type),
    ...(note === "" ? {} : { note }),
    lines: lines.slice(0, LINES),
    more: Math.max(0, lines.length - LINES),
  };
}

/** What is shown of a plan. */
export function view(plan: Plan): View {
  const all = plan.resources ?? [];
  const counts = new Map<Action, number>();
  for (const { action } of all) counts.set(action, (counts.get(action) ?? 0) + 1);
  const done = all.filter(({ action, was }) => action !== "same" || was !== undefined);
  const unknown = new Set(plan.unknownOutputs);
  const outputs = Object.entries(plan.outputs ?? {}).map(([path, value]): Line => ({ sign: "", path: short(path), new: shown(value, path, unknown) }));
  return {
    counts: [...counts],
    resources: done.slice(0, RESOURCES).map(resource),
    more: Math.max(0, done.length - RESOURCES),
    outputs: outputs.slice(0, LINES),
    moreOutputs: Math.max(0, outputs.length - LINES),
    warnings: plan.warnings.slice(0, MESSAGES).map(message),
    errors: plan.errors.slice(0, MESSAGES).map(message),
    moreWarnings: Math.max(0, plan.warnings.length - MESSAGES),
    moreErrors: Math.max(0, plan.errors.length - MESSAGES),
  };
}
