// What the page costs: bytes, time to a plan, and how long its own thread stands still. Prints the table of docs/performance.md.

import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";
import { browser, open, paste, serve } from "../test/site.mjs";

const site = fileURLToPath(new URL("../site/", import.meta.url));
const generated = fileURLToPath(new URL("../src/generated/", import.meta.url));

/** How often each is done. */
const TIMES = 15;

const row = (...cells) => console.log(`| ${cells.join(" | ")} |`);
const median = (times) => times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)];
const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
const ms = (time) => `${time.toFixed(1)} ms`;

function brotli(path) {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24 };
  return brotliCompressSync(readFileSync(path), { params }).length;
}

function sizes() {
  const planner = brotli(`${generated}planner.js`) + brotli(`${generated}planner.modules.js`);
  row("planner and its glue, after brotli", kilobytes(planner), "60 kB", (planner / 60_000).toFixed(2), "at most 1");
  const files = ["index.html", ...readdirSync(`${site}assets`).map((file) => `assets/${file}`)];
  const all = files.filter((file) => !file.includes("editor")).reduce((sum, file) => sum + brotli(site + file), 0);
  row("the page without its editor, after brotli", kilobytes(all), "300 kB", (all / 300_000).toFixed(2), "at most 1");
}

/** A page with nothing in it, and one whose worker returns what it is given. */
async function floors() {
  const pages = {
    "/empty": "<!doctype html><title>empty</title><p id=status>x</p>",
    "/echo": `<!doctype html><title>echo</title><p id=status></p><script>
      const worker = new Worker(URL.createObjectURL(new Blob(["onmessage = ({data}) => postMessage(data)"])));
      window.echo = (text) => new Promise((told) => { worker.onmessage = () => told(); worker.postMessage(text); });
    </script>`,
  };
  const server = createServer((request, response) => response.writeHead(200, { "content-type": "text/html" }).end(pages[request.url] ?? ""));
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return { at: `http://127.0.0.1:${server.address().port}`, end: () => server.close() };
}

/** Counts the longest time in which the page's thread did nothing else. */
const WATCH = () => {
  window.longest = 0;
  let last = performance.now();
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    const now = performance.now();
    window.longest = Math.max(window.longest, now - last);
    last = now;
    port2.postMessage(0);
  };
  port2.postMessage(0);
};

/** From the start of the navigation until the status says something; and the longest task on the way. */
async function load(chromium, address) {
  const context = await chromium.newContext();
  const page = await context.newPage();
  await page.addInitScript(WATCH);
  await page.goto(address, { waitUntil: "commit" });
  const took = await page.waitForFunction(() => document.querySelector("#status")?.textContent && performance.now(), undefined, { polling: "raf" });
  const time = await took.jsonValue();
  await page.waitForTimeout(300);
  const longest = await page.evaluate(() => window.longest);
  await context.close();
  return { time, longest };
}

async function several(what) {
  const all = [];
  for (let time = 0; time < TIMES; time += 1) all.push(await what());
  return all;
}

const resources = Array.from({ length: 100 }, (_, n) => `  r${n}:\n    type: bindery:compute/v1:BackendBucketIamMember\n    properties: {name: projects/home/global/backendBuckets/logs, role: roles/x, member: "user:u${n}@example.com"}\n`);
const stack = `name: many\nruntime: yaml\nresources:\n${resources.join("")}`;

const [served, floor, chromium] = [await serve(), await floors(), await browser()];
row("what", "measured", "against", "ratio", "meant");
row("---", "---", "---", "---", "---");
sizes();
const ours = await several(() => load(chromium, served.address));
const empty = await several(() => load(chromium, `${floor.at}/empty`));
const [first, nothing] = [median(ours.map(({ time }) => time)), median(empty.map(({ time }) => time))];
row("from nothing to the first plan, against an empty page", ms(first), ms(nothing), (first / nothing).toFixed(2), "");
const [stood, stoodEmpty] = [median(ours.map(({ longest }) => longest)), median(empty.map(({ longest }) => longest))];
row("longest task of the page's thread while it loads, against an empty page's", ms(stood), ms(stoodEmpty), (stood / stoodEmpty).toFixed(2), "at most 2");

const { page, context } = await open(chromium, served.address);
await paste(page, stack);
const typed = [];
await page.evaluate(WATCH);
await page.waitForTimeout(300);
await page.evaluate(() => {
  window.longest = 0;
});
for (let time = 0; time < TIMES; time += 1) {
  await page.keyboard.press(time % 2 === 0 ? "Space" : "Backspace");
  await page.waitForTimeout(400);
  typed.push(Number.parseInt(await page.locator("#took").innerText(), 10));
}
const stoodTyping = await page.evaluate(() => window.longest);
await context.close();
const bare = await chromium.newPage();
await bare.goto(`${floor.at}/echo`);
const echoed = await several(() => bare.evaluate(async (text) => {
  const since = performance.now();
  await window.echo(text);
  return performance.now() - since;
}, stack));
row("replanning 100 resources after a keystroke, against a worker that returns its text", ms(median(typed)), ms(median(echoed)), (median(typed) / median(echoed)).toFixed(1), "");
row("longest task while typing, against an empty page's", ms(stoodTyping), ms(stoodEmpty), (stoodTyping / stoodEmpty).toFixed(2), "at most 2");
await chromium.close();
served.end();
floor.end();
