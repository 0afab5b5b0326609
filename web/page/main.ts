// The page: what is typed is planned, and the plan is shown.

import "./style.css";
import type { Editing } from "./editor.js";
import { examples } from "./examples.js";
import type { Inputs, Listener, Planning } from "./planning.js";
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
const [pane, took, save] = [find("pane"), find("took"), find<HTMLButtonElement>("save")];
const [state, config] = [find<HTMLTextAreaElement>("state"), find<HTMLTextAreaElement>("config")];

const first = examples[0];
let stack = first?.stack ?? "";
/** The editor, once it is there: it is the largest part of the page. */
let editing: Editing | undefined;

/** What is shown, as text: what has not changed is not drawn again. */
let drawn = "";

/** Planning, once it is there. */
let planning: Planning | undefined;

const listener: Listener = {
  begun: () => pane.setAttribute("aria-busy", "true"),
  planned: (found, milliseconds) => {
    settled();
    const wrong = found.errors.length + found.moreErrors;
    const summary = wrong > 0 ? `${wrong} ${wrong === 1 ? "thing is" : "things are"} wrong` : count(found);
    // A screen reader says it again only where it is something else.
    if (status.textContent !== summary) status.textContent = summary;
    took.textContent = `${milliseconds.toFixed(0)} ms`;
    save.disabled = false;
    editing?.underline(found.errors);
    const text = JSON.stringify(found);
    if (text === drawn) return;
    drawn = text;
    said.replaceChildren(...messages(found, (line, column) => editing?.go(line, column)));
    shown.replaceChildren(...plan(found));
  },
  failed: (reason) => {
    settled();
    status.textContent = reason;
    took.textContent = "";
    save.disabled = true;
    drawn = "";
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
};
save.addEventListener("click", () => planning?.document());

/** The keys that are given beside the file: what follows the first `=` is the value. */
function given(): [string, string][] {
  const lines = config.value.split("\n").filter((line) => line.trim() !== "");
  return lines.map((line): [string, string] => {
    const at = line.indexOf("=");
    return at < 0 ? [line.trim(), ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
}

/** A state that came from a file. A large one is not put into the field: laying it out would hold up the page. */
let file: { name: string; text: string } | undefined;

/** The longest text of a file that is shown. */
const LONGEST_SHOWN = 200_000;

function now(): void {
  window.clearTimeout(timer);
  timer = 0;
  const text = file?.text ?? state.value.trim();
  const inputs: Inputs = { stack, state: text === "" ? undefined : text, config: given() };
  const from = file === undefined ? "" : `${file.name}, `;
  find("state-summary").textContent = inputs.state === undefined ? "none, so nothing exists" : `${from}${inputs.state.length} characters`;
  const keys = inputs.config.length;
  find("config-summary").textContent = keys === 0 ? "as the stack file says" : `${keys} ${keys === 1 ? "key" : "keys"} beside it`;
  planning?.plan(inputs);
}

/** Set while something is to be planned that is not planned yet. */
let timer = 0;
function later(): void {
  window.clearTimeout(timer);
  pane.setAttribute("aria-busy", "true");
  timer = window.setTimeout(now, PAUSE);
}

function settled(): void {
  if (timer === 0) pane.removeAttribute("aria-busy");
}

/** Counts where the state came from: a file that is still read is not the last. */
let sources = 0;

state.addEventListener("input", () => {
  sources += 1;
  file = undefined;
  later();
});
config.addEventListener("input", later);
find<HTMLInputElement>("state-file").addEventListener("change", async ({ target }) => {
  const input = target as HTMLInputElement;
  const chosen = input.files?.[0];
  if (chosen === undefined) return;
  const ours = ++sources;
  pane.setAttribute("aria-busy", "true");
  try {
    if (chosen.size > LARGEST_STATE) throw new Error("it is larger than 64 MiB, and no state of a stack");
    const text = (await chosen.text()).trim();
    // What was chosen or typed meanwhile counts.
    if (ours !== sources) return;
    const isLong = text.length > LONGEST_SHOWN;
    file = isLong ? { name: chosen.name, text } : undefined;
    state.value = isLong ? "" : text;
    now();
  } catch (error) {
    settled();
    status.textContent = `${chosen.name} cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
  // The same file may be chosen again, once it was written anew.
  input.value = "";
});

const choice = find<HTMLSelectElement>("examples");
choice.append(...examples.map(({ name }, index) => new Option(name, String(index))));
find("load").addEventListener("click", () => {
  const example = examples[Number(choice.value)];
  if (example === undefined) return;
  sources += 1;
  file = undefined;
  state.value = example.state ?? "";
  config.value = Object.entries(example.config ?? {}).map(([key, value]) => `${key}=${value}`).join("\n");
  stack = example.stack;
  editing?.replace(stack);
  later();
});

/** The editor comes first, and planning after it: the worker's compiler would hold up what a person waits for. */
import("./editor.js")
  .then(({ editor }) =>
    editor(find("editor"), stack, (text) => {
      stack = text;
      later();
    }),
  )
  .then((ready) => {
    editing = ready;
  })
  .catch((error: unknown) => {
    find("editor").textContent = `The editor could not be loaded (${String(error)}): load the page again.`;
  })
  .then(async () => {
    const { Planning } = await import("./planning.js");
    planning = new Planning(listener);
    now();
  })
  .catch((error: unknown) => listener.failed(`planning could not be loaded: ${String(error)}`));
