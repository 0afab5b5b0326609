// The table of plans (`web/cases`), which the command line's own tests record.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));

function read(path) {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

/** Every case: its name, what is planned, and what is expected. */
export function cases() {
  const folders = [
    [`${root}web/cases/`, `${root}web/cases/`, ""],
    [`${root}host/cli/tests/golden/bad/`, `${root}web/cases/bad/`, "bad/"],
  ];
  return folders.flatMap(([from, to, before]) =>
    readdirSync(from)
      // Without a recorded plan it is none: the command line's tests say which those are.
      .filter((file) => file.endsWith(".yaml") && existsSync(to + file.replace(/yaml$/, "plan.json")))
      .map((file) => {
        const name = file.slice(0, -".yaml".length);
        return {
          name: before + name,
          stack: readFileSync(from + file, "utf8"),
          state: read(`${to}${name}.state.json`),
          config: JSON.parse(read(`${to}${name}.config.json`) ?? "{}"),
          expected: JSON.parse(readFileSync(`${to}${name}.plan.json`, "utf8")),
        };
      }),
  );
}
