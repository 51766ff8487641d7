// The WebSocket contract over the mock cluster: subscribe with credit, watch, ping.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import type { Offsets, Start } from "../src/api/live/frames.ts";
import type { MockCluster, MockTopic } from "./mock-cluster.ts";

interface Upgrading {
  on: (event: "upgrade", listener: (request: IncomingMessage, socket: Duplex, head: Buffer) => void) => unknown;
}

interface Frame {
  type: string;
  id: string;
  sub: string;
  topic: string;
  start: Start;
  partitions?: number[];
  credit: { records: number; bytes: number };
  records: number;
  bytes: number;
  t: number;
}

interface Sub {
  made: MockTopic;
  next: Map<number, number>;
  records: number;
  bytes: number;
  isCaughtUp: boolean;
}

const SEND_EVERY_MS = 100;
const WATCH_EVERY_MS = 1_000;

export function attachSocket(server: Upgrading, cluster: MockCluster): void {
  const sockets = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request, socket, head) => {
    if (!request.url?.startsWith("/api/v1/ws")) return;
    sockets.handleUpgrade(request, socket, head, (ws) => serve(ws, cluster));
  });
}

function serve(ws: WebSocket, cluster: MockCluster): void {
  const subs = new Map<string, Sub>();
  const watches = new Map<string, MockTopic>();
  let nextSub = 1;
  const send = (frame: unknown): void => ws.send(JSON.stringify(frame));
  const push = setInterval(() => subs.forEach((sub, id) => deliver(id, sub, send)), SEND_EVERY_MS);
  const sendRows = (id: string, made: MockTopic): void =>
    send({ type: "partitions", sub: id, topic: made.topic.name, data: cluster.rows(made) });
  const watch = setInterval(() => watches.forEach((made, id) => sendRows(id, made)), WATCH_EVERY_MS);
  ws.on("close", () => {
    clearInterval(push);
    clearInterval(watch);
  });
  ws.on("message", (data: Buffer) => {
    const frame = JSON.parse(data.toString()) as Frame;
    const { type } = frame;
    if (type === "hello") return send({ type: "welcome", session: "m", heartbeat_ms: 20_000 });
    if (type === "ping") return send({ type: "pong", t: frame.t });
    if (type === "unsubscribe") {
      subs.delete(frame.sub);
      watches.delete(frame.sub);
      return;
    }
    if (type === "credit") {
      const sub = subs.get(frame.sub);
      if (sub) {
        sub.records += frame.records;
        sub.bytes += frame.bytes;
      }
      return;
    }
    const made = cluster.topics.get(frame.topic);
    if (!made)
      return send({
        type: "error",
        code: "UNKNOWN_TOPIC",
        message: "No such topic.",
        retryable: false,
        id: frame.id,
      });
    const id = String(nextSub++);
    if (type === "watch") {
      watches.set(id, made);
      send({ type: "subscribed", id: frame.id, sub: id });
      return sendRows(id, made);
    }
    const next = startPositions(made, frame.start, frame.partitions);
    const credit = frame.credit;
    subs.set(id, { made, next, ...credit, isCaughtUp: false });
    send({
      type: "subscribed",
      id: frame.id,
      sub: id,
      positions: Object.fromEntries([...next].map(([p, o]) => [p, String(o)])),
      hw: {},
    });
  });
}

function startPositions(made: MockTopic, start: Start, only: number[] | undefined): Map<number, number> {
  const next = new Map<number, number>();
  made.partitions.forEach((log, partition) => {
    if (only && !only.includes(partition)) return;
    const end = log.start + log.records.length;
    if (start === "earliest") next.set(partition, log.start);
    else if (start === "latest") next.set(partition, end);
    else if ("tail" in start) next.set(partition, Math.max(log.start, end - start.tail));
    else next.set(partition, Math.max(log.start, Number((start.offsets as Offsets)[String(partition)] ?? end)));
  });
  return next;
}

function deliver(id: string, sub: Sub, send: (frame: unknown) => void): void {
  for (const [partition, from] of sub.next) {
    const log = sub.made.partitions[partition];
    if (!log || sub.records <= 0) continue;
    const batch = log.records.slice(Math.max(0, from - log.start)).slice(0, Math.min(50, sub.records));
    if (batch.length === 0) continue;
    sub.records -= batch.length;
    sub.next.set(partition, Number(batch[batch.length - 1]?.offset) + 1);
    send({ type: "records", sub: id, batch, hw: {}, remaining_credit: { records: sub.records, bytes: sub.bytes } });
  }
  const isDone = [...sub.next].every(
    ([p, next]) => next >= (sub.made.partitions[p]?.start ?? 0) + (sub.made.partitions[p]?.records.length ?? 0),
  );
  if (isDone && !sub.isCaughtUp) send({ type: "caught_up", sub: id });
  sub.isCaughtUp = isDone;
}
