// Planning as the page uses it: the last question counts, and one that takes too long or breaks down ends with its worker.

import planner from "../src/generated/planner.modules.js?url";
import preview from "../src/generated/preview.modules.js?url";
import type { View } from "./view.js";
import type { Answer, Question } from "./worker.js";
import PlanningWorker from "./worker.js?worker&inline";

/** What is planned. */
export interface Inputs {
  stack: string;
  state: string | undefined;
  config: [string, string][];
}

/** How long a plan is waited for. Ten thousand resources take a few seconds. */
const LONGEST = 60_000;

/** What comes of it. */
export interface Listener {
  begun(): void;
  planned(view: View, milliseconds: number): void;
  failed(reason: string): void;
  /** The last plan as the JSON document of `bindery preview --json`. */
  document(text: string): void;
}

/** Plans what it is given, one after the other; of what is given meanwhile, the last. */
export class Planning {
  #worker: Worker | undefined;
  #number = 0;
  #since = 0;
  #timer = 0;
  #next: Inputs | undefined;
  #isBusy = false;

  constructor(readonly listener: Listener) {}

  /** Plans this next. */
  plan(inputs: Inputs): void {
    if (this.#isBusy) {
      this.#next = inputs;
      return;
    }
    this.#isBusy = true;
    this.#number += 1;
    this.#worker ??= this.#started();
    this.#since = performance.now();
    this.#timer = window.setTimeout(() => this.#end(`no plan after ${LONGEST / 1000} seconds; it was given up`), LONGEST);
    this.listener.begun();
    this.#ask({ number: this.#number, ...inputs });
  }

  /** Asks for the last plan's document. */
  document(): void {
    this.#ask("document");
  }

  #started(): Worker {
    const worker = new PlanningWorker();
    worker.addEventListener("message", ({ data }: MessageEvent<Answer>) => this.#answered(data));
    worker.addEventListener("error", (event) => this.#end(event.message || "the worker could not be started"));
    const address = (module: string): string => new URL(module, document.baseURI).href;
    worker.postMessage({ modules: { planner: address(planner), preview: address(preview) } } satisfies Question);
    return worker;
  }

  #ask(question: Question): void {
    this.#worker?.postMessage(question);
  }

  #answered(answer: Answer): void {
    if ("document" in answer) {
      this.listener.document(answer.document);
      return;
    }
    if (answer.number !== this.#number) return;
    if ("brokeDown" in answer) {
      this.#end(`planning broke down: ${answer.brokeDown}`);
      return;
    }
    this.#done(() => this.listener.planned(answer.view, performance.now() - this.#since));
  }

  /** The next plan has a worker of its own: an instance that has stopped in the middle is not to be used again. */
  #end(reason: string): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#done(() => this.listener.failed(reason));
  }

  #done(tell: () => void): void {
    window.clearTimeout(this.#timer);
    this.#isBusy = false;
    tell();
    const next = this.#next;
    this.#next = undefined;
    if (next !== undefined) this.plan(next);
  }
}
