// The built page in Debian's Chromium, from a server that does nothing else, at a path of its own.

import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const folder = fileURLToPath(new URL("../site/", import.meta.url));
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };
const PATH = "/some/where/";

/** Serves the page; gives its address, what was asked for, and how to end it. */
export async function serve() {
  const requests = [];
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`);
    const path = request.url === PATH ? "index.html" : request.url.slice(PATH.length);
    const file = folder + path;
    if (!request.url.startsWith(PATH) || path.includes("..") || !existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" }).end(readFileSync(file));
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return { address: `http://127.0.0.1:${server.address().port}${PATH}`, requests, end: () => server.close() };
}

/** Starts the browser. */
export async function browser() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(executablePath)) throw new Error(`there is no browser at ${executablePath}: apt-get install chromium`);
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

/** A page, and what it says that it should not. */
export async function open(launched, address, options = {}) {
  const context = await launched.newContext({ acceptDownloads: true, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.length < 5 && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(address);
  await settled(page);
  return { page, complaints, context };
}

/** Waits until what was typed is planned: the pause is over, and nothing is under way. */
export async function settled(page) {
  await page.waitForTimeout(120);
  await page.waitForFunction(() => !document.querySelector("#pane").hasAttribute("aria-busy") && document.querySelector("#status").textContent !== "", undefined, { timeout: 90_000 });
}

/** Replaces what is in the editor, as a person does who pastes. */
export async function paste(page, text) {
  await page.locator("#editor .cm-content").click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.locator("#editor .cm-content").evaluate((content, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    content.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, text);
  // Nothing is pasted by an empty clipboard.
  if (text === "") await page.keyboard.press("Delete");
  await settled(page);
}

/** Loads an example. */
export async function example(page, label) {
  await page.locator("#examples").selectOption({ label });
  await page.locator("#load").click();
  await settled(page);
}

/** Fills in a field of one of the two folds. */
export async function fill(page, name, text) {
  await page.locator(`#${name}-details`).evaluate((fold) => {
    fold.open = true;
  });
  await page.locator(`#${name}`).fill(text);
  await settled(page);
}

/** The plan's document, as it is saved. */
export async function saved(page) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#save").click()]);
  return JSON.parse(readFileSync(await download.path(), "utf8"));
}
