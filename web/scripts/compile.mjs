// Builds a crate of the workspace as a module or a component.

import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const target = `${root}target/guest`;

/** Builds it for a target and returns the path of its file. */
export function compile(name, triple, more = []) {
  const crate = ["rustc", "--quiet", "--locked", "--package", name, "--lib", "--crate-type", "cdylib"];
  const how = ["--profile", "page", "--target", triple, "--target-dir", target];
  execFileSync("cargo", [...crate, ...how, ...more], { cwd: root, stdio: "inherit" });
  return `${target}/${triple}/page/${name.replaceAll("-", "_")}.wasm`;
}

/** The planner component. */
export function planner() {
  return compile("bindery-planner", "wasm32-wasip2", ["--features", "standalone"]);
}
