// The page in a real browser: what a person types and sees, and that nothing leaves it.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import test, { after, before } from "node:test";
import { cases } from "./cases.mjs";
import { browser, fill, open, paste, saved, serve, settled } from "./site.mjs";

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
  assert.match(await page.locator(".cm-tooltip-lint").innerText(), /\w+/);
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

test("nothing is asked for once the page is there, and the policy forbids it", async () => {
  const { page, context } = await open(chromium, site.address);
  const before = site.requests.length;
  const asked = [];
  page.on("request", (request) => !request.url().startsWith("blob:") && asked.push(request.url()));
  await paste(page, GRANT);
  await fill(page, "state", "{}");
  await page.locator("#examples").selectOption({ index: 2 });
  await settled(page);
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
  assert.match(await page.locator("#status").innerText(), /wrong|to create/);
  assert.ok((await page.locator("#messages, #plan").allInnerTexts()).join("").length < 20_000, "what is shown is cut");
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
  for (const one of ["examples", "editor", "SUMMARY", "save"]) assert.ok(seen.has(one), `${one} in ${[...seen]}`);
  assert.equal(await page.locator("#status").getAttribute("role"), "status");
  const unnamed = await page.locator("input, select, textarea, button").evaluateAll((all) => all.filter((one) => one.labels?.length === 0 && one.textContent === "").length);
  assert.equal(unnamed, 0);
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
    await page.locator("#examples").selectOption({ label: "Members change" });
    await settled(page);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(overflow, 0, `${name} is wider than its window`);
    await page.screenshot({ path: `${folder}${name}.png`, fullPage: true });
    assert.deepEqual(complaints, []);
    await context.close();
  }
});
