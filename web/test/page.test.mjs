// The page in a real browser: what a person types and sees, and that nothing leaves it.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import test, { after, before } from "node:test";
import { cases } from "./cases.mjs";
import { browser, example, fill, open, paste, saved, serve, settled } from "./site.mjs";

let site, chromium;

before(async () => {
  site = await serve();
  chromium = await browser();
});

after(async () => {
  await chromium?.close();
  site?.end();
});

const GRANT = `name: typed
runtime: yaml
resources:
  one:
    type: bindery:compute/v1:BackendBucketIamMember
    properties: {name: projects/home/global/backendBuckets/logs, role: roles/x, member: "user:ann@example.com"}
`;

const all = (page, selector) => page.locator(selector).allInnerTexts();

test("every plan of the table is the command line's", async () => {
  const { page, complaints, context } = await open(chromium, site.address);
  let [state, keys] = ["", ""];
  for (const { name, stack, state: document = "", config, expected } of cases()) {
    const given = Object.entries(config).map(([key, value]) => `${key}=${value}`).join("\n");
    if (document !== state) await fill(page, "state", (state = document));
    if (given !== keys) await fill(page, "config", (keys = given));
    await paste(page, stack);
    assert.deepEqual(await saved(page), expected, name);
  }
  assert.deepEqual(complaints, []);
  await context.close();
});

test("what is typed is planned, and what is wrong is underlined with its reason", async () => {
  const { page, complaints, context } = await open(chromium, site.address);
  assert.match(await page.locator("#status").innerText(), /^3 to create/);
  await paste(page, GRANT);
  assert.match(await page.locator("#status").innerText(), /^1 to create/);
  assert.deepEqual(await all(page, ".resources .name"), ["one"]);
  // The closing quote, and the identity without its kind.
  await page.locator("#editor .cm-content").click();
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.type("  two: {type: bindery:compute/v1:BackendBucketIamMember, properties: {name: logs, role: x, member: ann}}");
  await settled(page);
  const [underlined] = await all(page, "#editor .cm-lintRange-error");
  assert.ok(underlined, "something is underlined");
  const messages = await all(page, ".messages .error");
  assert.ok(messages.some((message) => message.includes("property member")), messages.join("\n"));
  await page.locator("#editor .cm-lintRange-error").last().hover();
  const explained = await page.locator(".cm-tooltip-lint").innerText();
  assert.ok(messages.some((message) => message.includes(explained.split("\n")[0])), explained);
  // The explanation goes with the pointer, and was above the messages.
  await page.mouse.move(2, 2);
  await page.locator(".cm-tooltip-lint").waitFor({ state: "detached" });
  await page.locator(".messages button").first().click();
  assert.ok(await page.evaluate(() => document.querySelector("#editor").shadowRoot.activeElement !== null), "the place has the focus");
  assert.deepEqual(complaints, []);
  await context.close();
});

test("a state says what exists, from its file or pasted", async () => {
  const { page, complaints, context } = await open(chromium, site.address);
  const { stack, state } = cases().find(({ name }) => name === "updated");
  await paste(page, stack);
  assert.match(await page.locator("#status").innerText(), /3 to create/);
  const file = `${tmpdir()}/bindery-state-${process.pid}.json`;
  writeFileSync(file, state);
  await page.locator("#state-details summary").click();
  await page.locator("#state-file").setInputFiles(file);
  await settled(page);
  assert.match(await page.locator("#status").innerText(), /^1 to update, 2 unchanged/);
  assert.deepEqual(await all(page, ".resources del"), ['"group:video@example.com"']);
  assert.deepEqual(await all(page, ".resources ins"), ['"user:cy@example.com"', '"user:dee@example.com"']);
  await page.locator("#state").fill("");
  await settled(page);
  assert.match(await page.locator("#status").innerText(), /3 to create/);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("what a person sees is what the document says", async () => {
  const { page, complaints, context } = await open(chromium, site.address);
  const rows = async (name) => {
    const { stack, state = "", config } = cases().find((one) => one.name === name);
    await fill(page, "state", state);
    await fill(page, "config", Object.entries(config).map(([key, value]) => `${key}=${value}`).join("\n"));
    await paste(page, stack);
    const cells = await page.locator("tr").evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent).join("|")));
    return [...(await all(page, ".resources .word")), ...(await all(page, ".resources .note")), ...cells];
  };
  const removed = await rows("removed");
  assert.deepEqual(removed.slice(0, 3), ["delete", "delete", "delete"]);
  assert.ok(removed.includes('-|members|"user:bob@example.com"'), removed.join("\n"));
  const replaced = await rows("replaced");
  assert.ok(replaced.includes('~|role|"roles/compute.viewer" → "roles/compute.admin" (replaces)'), replaced.join("\n"));
  assert.ok((await rows("kept")).includes("the old one stays as it is"));
  assert.ok((await rows("renamed")).includes("was reader"));
  const unknown = await rows("not_known_yet");
  assert.ok(unknown.includes('+|condition|{"expression": "true", "title": known once it exists}'), unknown.join("\n"));
  assert.ok(unknown.includes("|etag|known once it exists"), unknown.join("\n"));
  assert.deepEqual(complaints, []);
  await context.close();
});

test("a worker that cannot be started is said once, and not tried for ever", async () => {
  const context = await chromium.newContext();
  const page = await context.newPage();
  await page.addInitScript(() => {
    window.started = 0;
    window.Worker = class extends EventTarget {
      constructor() {
        super();
        window.started += 1;
        setTimeout(() => this.dispatchEvent(new Event("error")));
      }
      postMessage() {}
      terminate() {}
    };
  });
  await page.goto(site.address);
  await settled(page);
  await page.waitForTimeout(500);
  assert.match(await page.locator("#status").innerText(), /could not be started/);
  assert.equal(await page.evaluate(() => window.started), 1);
  assert.ok(await page.locator("#save").isDisabled());
  await context.close();
});

test("nothing is asked for once the page is there, and the policy forbids it", async () => {
  const { page, context } = await open(chromium, site.address);
  const before = site.requests.length;
  const asked = [];
  page.on("request", (request) => !request.url().startsWith("blob:") && asked.push(request.url()));
  await paste(page, GRANT);
  await fill(page, "state", "{}");
  await example(page, "A grant is replaced");
  assert.deepEqual(asked, []);
  assert.equal(site.requests.length, before);
  const blocked = await page.evaluate(async (address) => fetch(address).then(() => "went out", () => "was blocked"), site.address);
  assert.equal(blocked, "was blocked");
  // The worker is under the same policy: a module of its own asks from there.
  const worker = page.workers()[0];
  assert.ok(worker, "planning runs in a worker");
  const fromWorker = await worker.evaluate(async (address) => fetch(address).then(() => "went out", () => "was blocked"), site.address);
  assert.equal(fromWorker, "was blocked");
  assert.equal(site.requests.length, before);
  await context.close();
});

test("markup in names is text", async () => {
  const { page, complaints, context } = await open(chromium, site.address);
  let alerted = false;
  page.on("dialog", (dialog) => {
    alerted = true;
    dialog.dismiss();
  });
  await paste(page, 'name: x\nruntime: yaml\nresources:\n  "<img src=x onerror=alert(1)>":\n    type: bindery:compute/v1:BackendBucketIamMember\n    properties: {name: projects/home/global/backendBuckets/logs, role: roles/x, member: "user:a@x.com", condition: {title: "<script>alert(1)</script>", expression: "true"}}\n');
  assert.deepEqual(await all(page, ".resources .name"), ["<img src=x onerror=alert(1)>"]);
  await paste(page, 'name: x\nruntime: yaml\nresources:\n  "<b>b</b>": {type: "<i>t</i>"}\n');
  assert.ok((await all(page, ".messages .error"))[0].includes("<i>t</i>"));
  assert.equal(await page.locator(".messages b, .messages i, .plan img, .plan script").count(), 0);
  assert.ok(!alerted);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("bad input is a clear message, and never a page that hangs", async () => {
  const { page, complaints, context } = await open(chromium, site.address);
  const errors = async () => (await all(page, ".messages .error")).join("\n");
  await paste(page, "name: [");
  assert.match(await errors(), /line \d+/);
  assert.deepEqual(await all(page, "#editor .cm-lintRange-error"), ["["]);
  await paste(page, "just words");
  assert.match(await errors(), /a stack file must be/);
  await paste(page, "");
  assert.notEqual(await errors(), "");
  await paste(page, GRANT);
  await fill(page, "state", '{"version": 4, "deployment": {}}');
  assert.match(await errors(), /deployment of version 4/);
  await fill(page, "state", "no JSON");
  assert.match(await errors(), /the state cannot be used/);
  await fill(page, "state", "");
  // While much is planned, the page's own thread answers.
  await page.evaluate(() => {
    window.longest = 0;
    new PerformanceObserver((list) => {
      for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
    }).observe({ type: "longtask" });
  });
  const many = Array.from({ length: 10_000 }, (_, n) => `  r${n}:\n    type: bindery:compute/v1:BackendBucketIamMember\n    properties: {name: projects/home/global/backendBuckets/logs, role: roles/x, member: "user:u${n}@example.com"}\n`);
  await paste(page, `name: many\nruntime: yaml\nresources:\n${many.join("")}`);
  assert.match(await page.locator("#status").innerText(), /^10000 to create/);
  assert.match(await page.locator("#plan").innerText(), /and 9800 more resources/);
  await paste(page, GRANT.replace("roles/x", `roles/${"x".repeat(1 << 20)}`));
  assert.equal(await page.locator("#status").innerText(), "1 thing is wrong");
  assert.ok((await page.locator("#messages, #plan").allInnerTexts()).join("").length < 20_000, "what is shown is cut");
  await paste(page, `name: x\nruntime: yaml\nresources:\n  a: {type: bindery:compute/v1:BackendBucketIamMember, properties: {${"p".repeat(1 << 20)}: 1}}\n`);
  assert.ok((await page.locator("#messages, #plan").allInnerTexts()).join("").length < 20_000, "what is said is cut");
  // A state of as many resources, from its file.
  const resource = (n) => ({ urn: `urn:pulumi:dev::many::t::r${n}`, custom: true, type: "t", id: "x", inputs: { text: "x".repeat(200) } });
  const file = `${tmpdir()}/bindery-large-${process.pid}.json`;
  writeFileSync(file, JSON.stringify({ version: 3, deployment: { manifest: {}, resources: Array.from({ length: 10_000 }, (_, n) => resource(n)) } }));
  await page.locator("#state-details").evaluate((fold) => {
    fold.open = true;
  });
  await page.locator("#state-file").setInputFiles(file);
  await settled(page);
  assert.match(await page.locator("#state-summary").innerText(), /bindery-large-\d+\.json, \d{7} characters/);
  await fill(page, "state", "{}");
  await fill(page, "state", "");
  const longest = await page.evaluate(() => window.longest);
  assert.ok(longest < 2_000, `the page stood still for ${longest} ms`);
  await paste(page, GRANT);
  assert.match(await page.locator("#status").innerText(), /^1 to create/);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("it is used by keyboard, and says what it does to a screen reader", async () => {
  const { page, complaints, context } = await open(chromium, site.address);
  const seen = new Set();
  for (let step = 0; step < 12; step += 1) {
    await page.keyboard.press("Tab");
    seen.add(await page.evaluate(() => {
      const focused = document.activeElement;
      return focused?.shadowRoot?.activeElement ? "editor" : (focused?.id || focused?.tagName);
    }));
  }
  for (const one of ["examples", "load", "editor", "SUMMARY", "save"]) assert.ok(seen.has(one), `${one} in ${[...seen]}`);
  assert.equal(await page.locator("#status").getAttribute("role"), "status");
  for (const [role, name] of [["combobox", "Example"], ["button", "Load"], ["button", "Save as JSON"], ["textbox", "Stack file, YAML"]]) {
    assert.equal(await page.getByRole(role, { name, exact: true }).count(), 1, `${role} ${name}`);
  }
  assert.equal(await page.locator("#editor [role=textbox]").getAttribute("aria-label"), "Stack file, YAML");
  assert.equal(await page.locator(".resources .word").first().innerText(), "create");
  assert.deepEqual(complaints, []);
  await context.close();
});

test("light, dark and a phone's width show everything that there is", async () => {
  const folder = fileURLToPath(new URL("../screenshots/", import.meta.url));
  mkdirSync(folder, { recursive: true });
  for (const [name, options] of Object.entries({
    light: { colorScheme: "light", viewport: { width: 1280, height: 900 } },
    dark: { colorScheme: "dark", viewport: { width: 1280, height: 900 } },
    phone: { colorScheme: "light", viewport: { width: 390, height: 844 } },
  })) {
    const { page, complaints, context } = await open(chromium, site.address, options);
    await example(page, "Members change");
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(overflow, 0, `${name} is wider than its window`);
    await page.screenshot({ path: `${folder}${name}.png`, fullPage: true });
    assert.deepEqual(complaints, []);
    await context.close();
  }
});
