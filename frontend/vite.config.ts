// Built files go to the folder that Django serves; in development everything but the pages is proxied to a running
// stack (`HIGHWATER_URL`, default http://127.0.0.1:8000) or, with MOCK=1, answered by dev/mock.
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";
import { mockBackend } from "./dev/mock.ts";

const backend = process.env["HIGHWATER_URL"] ?? "http://127.0.0.1:8000";
const isMocked = process.env["MOCK"] === "1";

export default defineConfig(({ command }) => ({
  base: command === "build" ? "/static/dashboard/" : "/",
  plugins: [react(), ...(isMocked ? [mockBackend()] : [])],
  build: {
    outDir: "../web/static/dashboard",
    emptyOutDir: true,
    manifest: true,
    // The Content-Security-Policy is default-src 'self': no data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: isMocked ? {} : { proxy: { "/api": { target: backend, ws: true } } },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
}));
