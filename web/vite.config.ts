import { defineConfig } from "vite";

export default defineConfig({
  root: "page",
  // The folder works from any path.
  base: "./",
  build: {
    outDir: "../site",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 2000,
  },
  worker: { format: "es" },
});
