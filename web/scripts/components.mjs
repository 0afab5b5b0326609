// Builds the two components and makes them modules of JavaScript: the planner, and the planning that asks it. Both are written to
// `src/generated`, each with its core modules as text beside it.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { componentNew, opt, transpile } from "@bytecodealliance/jco";
import { compile, planner } from "./compile.mjs";

const generated = fileURLToPath(new URL("../src/generated/", import.meta.url));

/** What every browser of the last years has, and the compiler uses. */
const FEATURES = ["bulk-memory", "bulk-memory-opt", "sign-ext", "nontrapping-float-to-int", "mutable-globals", "reference-types", "multivalue"];

/** The bytes as the literal of a string of as many characters: it compresses as well as they do, which base64 does not. */
function literal(bytes) {
  const escaped = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r" };
  const characters = Array.from(bytes, (byte) => String.fromCharCode(byte));
  return `"${characters.map((character) => escaped[character] ?? character).join("")}"`;
}

/** The glue fetches its modules where nobody hands them to it. Here they always are, and nothing is to be fetched. */
function withoutFetch(glue) {
  const fetching = /getCoreModule\|\|\(getCoreModule=\w+=>fetchCompile\(new URL\([^)]*\)\)\);/;
  if (!fetching.test(glue)) throw new Error("the glue does not fetch its modules as it did: look at what jco makes of it now");
  return glue.replace(fetching, "");
}

/** Writes a component's modules: its glue, its types, and its core modules as text. */
async function write(component, name) {
  const args = ["-Oz", ...FEATURES.map((feature) => `--enable-${feature}`)];
  const optimized = await opt(component, { quiet: true, optArgs: args });
  const { files } = await transpile(optimized.component, {
    name,
    instantiation: "async",
    nodejsCompat: false,
    noNodejsCompat: true,
    minify: true,
    validLiftingOptimization: true,
  });
  const modules = [];
  for (const [file, contents] of Object.entries(files)) {
    if (file.endsWith(".wasm")) {
      modules.push(`${JSON.stringify(file)}: ${literal(contents)}`);
    } else {
      const path = `${generated}${file}`;
      mkdirSync(path.slice(0, path.lastIndexOf("/")), { recursive: true });
      writeFileSync(path, file.endsWith(".js") ? withoutFetch(Buffer.from(contents).toString()) : contents);
    }
  }
  writeFileSync(`${generated}${name}.modules.js`, `export default {\n${modules.join(",\n")}\n};\n`);
  writeFileSync(`${generated}${name}.modules.d.ts`, "declare const modules: Record<string, string>;\nexport default modules;\n");
}

rmSync(generated, { recursive: true, force: true });
mkdirSync(generated, { recursive: true });
await write(readFileSync(planner()), "planner");
await write(await componentNew(readFileSync(compile("bindery-preview", "wasm32-unknown-unknown"))), "preview");
