// Puts what was generated beside what was compiled: the compiler leaves JavaScript where it is.

import { cpSync } from "node:fs";
import { fileURLToPath } from "node:url";

const at = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
cpSync(at("src/generated"), at("dist/generated"), { recursive: true });
