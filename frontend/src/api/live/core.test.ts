import { describe, expect, it } from "vitest";
import type { LogRecord } from "../types";
import { type Effect, LiveCore } from "./core";
import type { ClientFrame } from "./frames";

const CREDIT = { records: 100, bytes: 1_000 };
const record = (partition: number, offset: string): LogRecord => ({
  partition,
  offset,
  timestamp: 0,
  key: null,
  value: null,
  headers: [],
});

const sent = (effects: Effect[]): ClientFrame[] => effects.flatMap((e) => (e.do === "send" ? [e.frame] : []));
const told = (effects: Effect[]) => effects.flatMap((e) => (e.do === "tell" ? [e.event] : []));

function connect(core: LiveCore): Effect[] {
  core.start();
  core.onTicket("ticket-1");
  core.onOpen();
  return core.onFrame({ type: "welcome", session: "s" });
}

function liveTail(): LiveCore {
  const core = new LiveCore(() => 1);
  connect(core);
  core.addTail("t1", { topic: "orders", start: "earliest", credit: CREDIT });
  core.onFrame({ type: "subscribed", id: "t1", sub: "7", positions: { "0": "0", "1": "0" } });
  return core;
}

describe("the way in", () => {
  it("asks for a ticket, opens, greets with it, and subscribes only when welcomed", () => {
    const core = new LiveCore(() => 1);
    core.addWatch("w1", { topic: "orders" });
    expect(core.start()).toEqual([{ do: "ask-ticket" }]);
    expect(core.onTicket("abc")).toEqual([{ do: "open", ticket: "abc" }]);
    expect(sent(core.onOpen())).toEqual([{ type: "hello", token: "abc", client: "dashboard" }]);
    expect(sent(core.onFrame({ type: "welcome", session: "s" }))).toEqual([
      { type: "watch", id: "w1", topic: "orders" },
    ]);
    expect(core.phase).toBe("live");
  });

  it("stops when the session has ended, and waits when the server is away", () => {
    const away = new LiveCore(() => 1);
    away.start();
    expect(away.onTicketRefused(false)).toEqual([{ do: "wait", ms: 500 }]);
    const signedOut = new LiveCore(() => 1);
    signedOut.start();
    signedOut.onTicketRefused(true);
    expect(signedOut.phase).toBe("stopped");
  });
});

describe("a lost connection", () => {
  it("waits longer each time, up to a limit, and forgets that once welcomed", () => {
    const core = new LiveCore(() => 1);
    const waits: number[] = [];
    core.start();
    for (let round = 0; round < 8; round += 1) {
      const [wait] = core.onTicketRefused(false);
      if (wait?.do === "wait") waits.push(wait.ms);
      core.start();
    }
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000, 15000, 15000, 15000]);
    core.onTicket("t");
    core.onOpen();
    core.onFrame({ type: "welcome", session: "s" });
    expect(core.onClose(1006, "")).toContainEqual({ do: "wait", ms: 500 });
  });

  it("does not come back after a refusal, but does after a quota or a restart", () => {
    for (const [code, phase] of [
      [4403, "stopped"],
      [4401, "waiting"],
      [4429, "waiting"],
      [4408, "waiting"],
      [4503, "waiting"],
      [1006, "waiting"],
    ] as const) {
      const core = new LiveCore(() => 1);
      connect(core);
      core.onClose(code, "");
      expect([code, core.phase]).toEqual([code, phase]);
    }
  });

  it("goes on at the next offset of every partition", () => {
    const core = liveTail();
    core.onFrame({ type: "records", sub: "7", batch: [record(0, "0"), record(0, "1"), record(1, "9007199254740993")] });
    expect(told(core.onClose(1006, ""))).toEqual([{ kind: "interrupted" }]);
    const frames = sent(connect(core));
    expect(frames).toEqual([
      {
        type: "subscribe",
        id: "t1",
        topic: "orders",
        start: { offsets: { "0": "2", "1": "9007199254740994" } },
        credit: CREDIT,
      },
    ]);
  });
});

describe("gaps", () => {
  it("marks offsets that the server skipped", () => {
    const core = liveTail();
    const [event] = told(core.onFrame({ type: "records", sub: "7", batch: [record(0, "0"), record(0, "5")] }));
    expect(event).toMatchObject({ kind: "records", gaps: [{ partition: 0, from: 1n, to: 4n }] });
  });

  it("marks what retention took while the connection was lost", () => {
    const core = liveTail();
    core.onFrame({ type: "records", sub: "7", batch: [record(0, "0")] });
    core.onClose(1006, "");
    connect(core);
    const events = told(core.onFrame({ type: "subscribed", id: "t1", sub: "1", positions: { "0": "10", "1": "0" } }));
    expect(events).toContainEqual(expect.objectContaining({ gaps: [{ partition: 0, from: 1n, to: 9n }] }));
  });
});

describe("a place that is no longer in the log", () => {
  it("goes on at the end and marks what was left out", () => {
    const core = liveTail();
    core.onFrame({ type: "records", sub: "7", batch: [record(0, "4")] });
    core.onClose(1006, "");
    connect(core);
    const lost = core.onFrame({ type: "error", code: "offset_out_of_range", message: "gone", id: "t1" });
    expect(lost).toContainEqual({ do: "retry", id: "t1", ms: 1500 });
    expect(sent(core.retry("t1"))[0]).toMatchObject({ start: "latest" });
    const events = told(core.onFrame({ type: "subscribed", id: "t1", sub: "9", positions: { "0": "90" } }));
    expect(events).toContainEqual(expect.objectContaining({ gaps: [{ partition: 0, from: 5n, to: 89n }] }));
  });

  it("is an error when the user asked for it", () => {
    const core = new LiveCore(() => 1);
    connect(core);
    core.addTail("t1", { topic: "orders", start: { offsets: { "0": "99" } }, credit: CREDIT });
    const [event] = told(core.onFrame({ type: "error", code: "offset_out_of_range", message: "gone", id: "t1" }));
    expect(event).toMatchObject({ kind: "failed", willRetry: false });
  });
});

describe("subscriptions", () => {
  it("sends credit and unsubscribe under the server's number", () => {
    const core = liveTail();
    expect(sent(core.grant("t1", { records: 5, bytes: 50 }))).toEqual([
      { type: "credit", sub: "7", records: 5, bytes: 50 },
    ]);
    expect(sent(core.remove("t1"))).toEqual([{ type: "unsubscribe", sub: "7" }]);
  });

  it("unsubscribes from an answer that comes after the page has left", () => {
    const core = new LiveCore(() => 1);
    connect(core);
    core.addWatch("w1", { topic: "orders" });
    core.remove("w1");
    expect(sent(core.onFrame({ type: "subscribed", id: "w1", sub: "3" }))).toEqual([{ type: "unsubscribe", sub: "3" }]);
  });

  it("tries a retryable error again and leaves the others alone", () => {
    const core = liveTail();
    const retryable = core.onFrame({ type: "error", code: 5, message: "no leader", retryable: true, sub: "7" });
    expect(retryable).toContainEqual({ do: "retry", id: "t1", ms: 1500 });
    expect(sent(core.retry("t1"))).toHaveLength(1);
    core.onFrame({ type: "subscribed", id: "t1", sub: "8" });
    const final = core.onFrame({ type: "error", code: 29, message: "denied", sub: "8" });
    expect(final).toEqual([{ do: "tell", id: "t1", event: { kind: "failed", message: "denied", willRetry: false } }]);
  });
});

describe("a watch of groups", () => {
  it("asks for one group or for all, and tells each of its own", () => {
    const core = new LiveCore(() => 1);
    connect(core);
    expect(sent(core.addWatch("g1", { group: "readers" }))).toEqual([{ type: "watch", id: "g1", group: "readers" }]);
    expect(sent(core.addWatch("g2", { groups: true }))).toEqual([{ type: "watch", id: "g2", groups: true }]);
    core.onFrame({ type: "subscribed", id: "g1", sub: "1" });
    core.onFrame({ type: "subscribed", id: "g2", sub: "2" });
    expect(told(core.onFrame({ type: "groups", sub: "2", data: [] }))).toEqual([{ kind: "groups", rows: [] }]);
    const page = { name: "readers" } as never;
    expect(told(core.onFrame({ type: "group", sub: "1", group: "readers", data: page }))).toEqual([
      { kind: "group", page },
    ]);
  });
});
