// The editor of the stack file. It lives in a shadow root: there its styles need no exception from the page's policy.

import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, type Text } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Message } from "../src/plan.js";

const theme = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--surface)", color: "var(--text)", fontSize: "0.875rem" },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--code)", lineHeight: "1.5" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--faint)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--active)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection) !important" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)", maxWidth: "60ch" },
  ".cm-diagnostic-error": { borderLeftColor: "var(--removed)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--removed)", textUnderlineOffset: "3px" },
});

const highlighting = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--key)" },
  { tag: [tags.string, tags.content], color: "var(--string)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--faint)", fontStyle: "italic" },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: "var(--number)" },
]);

/** The editor, as the page uses it. */
export interface Editing {
  /** Replaces the whole text. */
  replace(text: string): void;
  /** Underlines what is wrong: from its place to the end of the word or the value. */
  underline(errors: Message[]): void;
  /** Moves to a place, and has what is typed go there. */
  go(line: number, column: number): void;
}

/** The editor in an element; `changed` hears of every change. */
export async function editor(parent: HTMLElement, text: string, changed: (text: string) => void): Promise<Editing> {
  // It comes in several tasks: together they would hold up the page.
  await nextFrame();
  const root = parent.attachShadow({ mode: "open" });
  const [language, colours, comforts] = [new Compartment(), new Compartment(), new Compartment()];
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        history(),
        language.of([]),
        colours.of([]),
        comforts.of([]),
        keymap.of([...defaultKeymap, ...historyKeymap, ...lintKeymap]),
        EditorView.contentAttributes.of({ "aria-label": "Stack file, YAML" }),
        EditorState.tabSize.of(2),
        theme,
        EditorView.updateListener.of((update) => {
          if (update.docChanged) changed(update.state.doc.toString());
        }),
      ],
    }),
  });
  await nextFrame();
  view.dispatch({ effects: language.reconfigure(yaml()) });
  await nextFrame();
  view.dispatch({ effects: colours.reconfigure(syntaxHighlighting(highlighting)) });
  await nextFrame();
  const all = [lintGutter(), drawSelection(), indentOnInput(), bracketMatching(), highlightActiveLine()];
  view.dispatch({ effects: comforts.reconfigure(all) });
  await nextFrame();
  return {
    replace: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: 0 } }),
    underline: (errors) => {
      const diagnostics = errors.flatMap((error) => diagnostic(view.state.doc, error));
      view.dispatch(setDiagnostics(view.state, diagnostics));
    },
    go: (lineNumber, column) => {
      const line = view.state.doc.line(Math.min(lineNumber, view.state.doc.lines));
      const anchor = Math.min(line.from + units(line.text, column), line.to);
      view.dispatch({ selection: { anchor }, scrollIntoView: true });
      view.focus();
    },
  };
}

/** Once the browser has drawn what there is; one in the background draws nothing, and is not waited for. */
function nextFrame(): Promise<void> {
  return new Promise((drawn) => {
    setTimeout(drawn, 50);
    requestAnimationFrame(() => setTimeout(drawn));
  });
}

/** How far into a line a column is: columns are characters, which may be two units of the text. */
function units(line: string, column: number): number {
  return Array.from(line.slice(0, 2 * column)).slice(0, column - 1).join("").length;
}

function diagnostic(document: Text, error: Message): Diagnostic[] {
  if (error.line === undefined) return [];
  // What is unfinished is wrong behind the end: its last word is marked.
  const isBehind = error.line > document.lines;
  const line = document.line(Math.min(error.line, document.lines));
  const before = isBehind ? line.length : units(line.text, error.column ?? 1);
  const from = Math.min(line.from + before, line.to);
  if (from === line.to) {
    const word = /\S*\s*$/.exec(document.sliceString(Math.max(0, from - 200), from));
    return [{ from: from - (word?.[0].length ?? 0), to: from, severity: "error", message: explained(error) }];
  }
  const value = /^("[^"]*"|'[^']*'|[^#,}\]]*[^#,}\]\s])/.exec(line.text.slice(before, before + 200));
  const to = Math.max(from, Math.min(line.to, from + (value?.[0].length ?? 0)));
  return [{ from, to, severity: "error", message: explained(error) }];
}

function explained(error: Message): string {
  return error.hint === undefined ? error.message : `${error.message}\n${error.hint}`;
}
