// The page: what is typed is planned, and the plan is shown.

import "./style.css";
import type { Message } from "../src/plan.js";
import type { Editing } from "./editor.js";
import { examples } from "./examples.js";
import { type Inputs, Planning } from "./planning.js";
import { count, messages, plan } from "./render.js";

/** How long nothing is typed before it is planned. */
const PAUSE = 80;

/** The largest file that is read as a state. */
const LARGEST_STATE = 64 * 1024 * 1024;

function find<E extends HTMLElement>(id: string): E {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found as E;
}

const [status, shown, said] = [find("status"), find("plan"), find("messages")];
const [state, config] = [find<HTMLTextAreaElement>("state"), find<HTMLTextAreaElement>("config")];

const first = examples[0];
let stack = first?.stack ?? "";
/** The editor, once it is there: it is the largest part of the page, and the first plan does not wait for it. */
let editing: Editing | undefined;
let wrongNow: Message[] = [];

const planning = new Planning({
  begun: () => document.body.setAttribute("aria-busy", "true"),
  planned: (found, milliseconds) => {
    document.body.removeAttribute("aria-busy");
    const wrong = found.errors.length + found.moreErrors;
    const summary = wrong > 0 ? `${wrong} ${wrong === 1 ? "thing is" : "things are"} wrong` : count(found);
    status.textContent = `${summary} (${milliseconds.toFixed(0)} ms)`;
    wrongNow = found.errors;
    editing?.underline(wrongNow);
    said.replaceChildren(...messages(found, (line, column) => editing?.go(line, column)));
    shown.replaceChildren(...plan(found));
  },
  failed: (reason) => {
    document.body.removeAttribute("aria-busy");
    status.textContent = reason;
    said.replaceChildren();
    shown.replaceChildren();
    editing?.underline([]);
  },
  document: (text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "plan.json";
    link.click();
    URL.revokeObjectURL(link.href);
  },
});
find("save").addEventListener("click", () => planning.document());

/** The keys that are given beside the file: what follows the first `=` is the value. */
function given(): [string, string][] {
  const lines = config.value.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line): [string, string] => {
    const at = line.indexOf("=");
    return at < 0 ? [line.trim(), ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
}

function now(): void {
  const text = state.value.trim();
  const inputs: Inputs = { stack, state: text === "" ? undefined : text, config: given() };
  find("state-summary").textContent = inputs.state === undefined ? "none, so nothing exists" : `${inputs.state.length} characters`;
  const keys = inputs.config.length;
  find("config-summary").textContent = keys === 0 ? "as the stack file says" : `${keys} ${keys === 1 ? "key" : "keys"} beside it`;
  planning.plan(inputs);
}

let timer = 0;
function later(): void {
  window.clearTimeout(timer);
  timer = window.setTimeout(now, PAUSE);
}

state.addEventListener("input", later);
config.addEventListener("input", later);
find<HTMLInputElement>("state-file").addEventListener("change", async ({ target }) => {
  const file = (target as HTMLInputElement).files?.[0];
  if (file === undefined) return;
  if (file.size > LARGEST_STATE) {
    status.textContent = `${file.name} is larger than 64 MiB: it is no state of a stack`;
    return;
  }
  state.value = await file.text();
  now();
});

const choice = find<HTMLSelectElement>("examples");
choice.append(...examples.map(({ name }, index) => new Option(name, String(index))));
choice.addEventListener("change", () => {
  const example = examples[Number(choice.value)];
  if (example === undefined) return;
  state.value = example.state ?? "";
  config.value = Object.entries(example.config ?? {}).map(([key, value]) => `${key}=${value}`).join("\n");
  stack = example.stack;
  editing?.replace(stack);
  later();
});

now();
void import("./editor.js").then(({ editor }) => {
  editing = editor(find("editor"), stack, (text) => {
    stack = text;
    later();
  });
  editing.underline(wrongNow);
});
