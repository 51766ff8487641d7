// A stand-in for the server while working on pages: `MOCK=1 npm run dev`. In memory, one made-up tenant, no rights.
// Not part of the build. `?empty` as email signs in to a tenant without topics.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Plugin, ViteDevServer } from "vite";
import { MockCluster } from "./mock-cluster.ts";
import { attachSocket } from "./mock-socket.ts";
import { routes } from "./mock-routes.ts";

const SEND_EVERY_MS = 400;

export function mockBackend(): Plugin {
  return {
    name: "highwater-mock",
    configureServer(server: ViteDevServer) {
      const cluster = new MockCluster();
      const timer = setInterval(() => cluster.makeTraffic(), SEND_EVERY_MS);
      server.httpServer?.on("close", () => clearInterval(timer));
      if (server.httpServer) attachSocket(server.httpServer, cluster);
      server.middlewares.use("/api/v1", (request, response) => void answer(cluster, request, response));
    },
  };
}

async function answer(cluster: MockCluster, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://mock");
  const body = await readJson(request);
  const found = routes(cluster, request.method ?? "GET", url, body);
  const type = found.status >= 400 ? "application/problem+json" : "application/json";
  response.writeHead(found.status, { "Content-Type": type });
  response.end(found.body === undefined ? "" : JSON.stringify(found.body));
}

async function readJson(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  return text ? (JSON.parse(text) as Record<string, unknown>) : {};
}
