import { describe, expect, it } from "vitest";
import type { LiveEvent } from "../../api/live/core";
import type { Credit } from "../../api/live/frames";
import type { LogRecord } from "../../api/types";
import { ROWS_MAX, TAIL_CREDIT, TailStore } from "./tail-store";

const record = (offset: number): LogRecord => ({
  partition: 0,
  offset: String(offset),
  timestamp: 0,
  key: null,
  value: null,
  headers: [],
});

function openTail() {
  const granted: Credit[] = [];
  let tell: (event: LiveEvent) => void = () => undefined;
  let nowMs = 0;
  const store = new TailStore({
    open: (listener) => {
      tell = listener;
      return { grant: (credit) => granted.push(credit), close: () => undefined };
    },
    nowMs: () => nowMs,
    schedule: (work) => work(),
  });
  let next = 0;
  const arrive = (count: number, remaining: Partial<Credit> = {}): void => {
    const records = Array.from({ length: count }, () => record(next++));
    tell({ kind: "records", records, gaps: [], remaining });
  };
  return { store, granted, arrive, tell: (event: LiveEvent) => tell(event), passMs: (ms: number) => (nowMs += ms) };
}

const offsets = (store: TailStore) =>
  store.getState().rows.map((row) => (row.kind === "record" ? row.record.offset : "gap"));

describe("the tail", () => {
  it("shows the newest first and keeps only the last", () => {
    const { store, arrive } = openTail();
    arrive(3);
    expect(offsets(store)).toEqual(["2", "1", "0"]);
    arrive(ROWS_MAX);
    expect(store.getState().rows).toHaveLength(ROWS_MAX);
    expect(store.getState().receivedCount).toBe(ROWS_MAX + 3);
    expect(offsets(store)[0]).toBe(String(ROWS_MAX + 2));
  });

  it("gives credit back when half of it is used", () => {
    const { granted, arrive } = openTail();
    arrive(200);
    expect(granted).toEqual([]);
    arrive(100);
    expect(granted).toEqual([{ records: 300, bytes: 0 }]);
  });

  it("gives bytes back when large records use them up first", () => {
    const { granted, arrive } = openTail();
    arrive(1, { records: 499, bytes: 1_000 });
    expect(granted).toEqual([{ records: 1, bytes: TAIL_CREDIT.bytes - 1_000 }]);
  });

  it("holds what was under way when paused, asks for no more, and goes on without a hole", () => {
    const { store, granted, arrive } = openTail();
    arrive(2);
    store.pause();
    arrive(400);
    expect(store.getState()).toMatchObject({ heldCount: 400, receivedCount: 2 });
    expect(granted).toEqual([]);
    store.resume();
    expect(store.getState()).toMatchObject({ heldCount: 0, receivedCount: 402 });
    expect(granted).toHaveLength(1);
    expect(offsets(store)[0]).toBe("401");
  });

  it("forgets the rate when nothing comes any more", () => {
    const { store, arrive, passMs } = openTail();
    arrive(30);
    expect(store.getState().ratePerSecond).toBe(10);
    passMs(5_000);
    store.tick();
    expect(store.getState().ratePerSecond).toBe(0);
  });

  it("puts a mark where offsets are missing", () => {
    const { store, tell } = openTail();
    tell({ kind: "records", records: [record(9)], gaps: [{ partition: 0, from: 1n, to: 8n }], remaining: {} });
    expect(offsets(store)).toEqual(["9", "gap"]);
  });
});
