// The plan as a person reads it. Everything that comes from a stack file is text: nothing of it becomes markup.

import type { Action, Message } from "../src/plan.js";
import type { Line, Shown, View } from "./view.js";

const SIGNS: Record<Action, [sign: string, word: string, count: string]> = {
  create: ["+", "create", "to create"],
  import: ["=", "adopt", "to adopt"],
  update: ["~", "update", "to update"],
  replace: ["+-", "replace", "to replace"],
  delete: ["-", "delete", "to delete"],
  forget: ["x", "let go", "to let go"],
  same: ["", "keep", "unchanged"],
};

/** How a count is said: the same words and order as the command line's. */
const ORDER: Action[] = ["create", "import", "update", "replace", "delete", "forget", "same"];

function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  className: string,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  if (className !== "") made.className = className;
  made.append(...children);
  return made;
}

/** `2 to create, 1 unchanged`. */
export function count(view: View): string {
  const counts = new Map(view.counts);
  const parts = ORDER.filter((action) => counts.has(action)).map((action) => `${counts.get(action)} ${SIGNS[action][2]}`);
  return parts.length === 0 ? "nothing is declared, and nothing exists" : parts.join(", ");
}

function values(line: Line): (Node | string)[] {
  if (line.old !== undefined && line.new !== undefined) {
    return [
      element("del", "", line.old),
      element("span", "arrow", " → "),
      element("ins", "", line.new),
    ];
  }
  return line.old !== undefined ? [element("del", "", line.old)] : [element("ins", "", line.new ?? "")];
}

function row(line: Line): HTMLElement {
  const note = line.note ? [element("span", "note", ` (${line.note})`)] : [];
  return element(
    "tr",
    "",
    element("td", "sign", line.sign),
    element("th", "", line.path),
    element("td", "value", ...values(line), ...note),
  );
}

function table(lines: Line[], more: number): HTMLElement[] {
  if (lines.length === 0) return [];
  const made = element("table", "", ...lines.map(row));
  made.querySelectorAll("th").forEach((cell) => {
    cell.scope = "row";
  });
  return more > 0 ? [made, element("p", "more", `… ${more} more`)] : [made];
}

function resource(shown: Shown): HTMLElement {
  const [sign, word] = SIGNS[shown.action];
  const badge = element("span", "badge", sign);
  badge.setAttribute("aria-hidden", "true");
  const note = shown.note === undefined ? [] : [element("p", "note", shown.note)];
  const heading = element("h3", "", badge, element("span", "name", shown.name), " ", element("span", "word", word));
  return element("li", shown.action, heading, element("p", "type", shown.type), ...note, ...table(shown.lines, shown.more));
}

/** What a plan does. */
export function plan(view: View): HTMLElement[] {
  const made: HTMLElement[] = [];
  if (view.resources.length > 0) made.push(element("ol", "resources", ...view.resources.map(resource)));
  if (view.more > 0) made.push(element("p", "more", `… and ${view.more} more resources, which are not shown`));
  if (view.outputs.length > 0) made.push(element("h3", "outputs", "Outputs"), ...table(view.outputs, view.moreOutputs));
  return made;
}

/** What is wrong, or should be known; a place is a button that leads there. */
export function messages(view: View, go: (line: number, column: number) => void): HTMLElement[] {
  const one = (found: Message, kind: "error" | "warning"): HTMLElement => {
    const of = found.resource === undefined ? "" : found.path ? `resource ${found.resource}, property ${found.path}: ` : `resource ${found.resource}: `;
    const made = element("li", kind, element("strong", "", `${kind}: `), of, found.message);
    if (found.hint !== undefined) made.append(element("p", "hint", `hint: ${found.hint}`));
    if (found.line !== undefined) {
      const [line, column] = [found.line, found.column ?? 1];
      const button = element("button", "", `line ${line}, column ${column}`);
      button.type = "button";
      button.addEventListener("click", () => go(line, column));
      made.append(" ", button);
    }
    return made;
  };
  const all = [...view.errors.map((found) => one(found, "error")), ...view.warnings.map((found) => one(found, "warning"))];
  if (view.moreErrors > 0) all.push(element("li", "error", `and ${view.moreErrors} more like these`));
  if (view.moreWarnings > 0) all.push(element("li", "warning", `and ${view.moreWarnings} more warnings`));
  return all.length === 0 ? [] : [element("ul", "messages", ...all)];
}
