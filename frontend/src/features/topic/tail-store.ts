// What the live tail shows: the last records, newest first, bounded. Pausing stops the credit, so the server stops
// reading the log: nothing piles up on either side, and resuming goes on at the very next record.
import type { TailHandle } from "../../api/live/client";
import type { LiveEvent } from "../../api/live/core";
import type { Credit } from "../../api/live/frames";
import type { Gap } from "../../api/live/position";
import type { LogRecord } from "../../api/types";
import { mergedByTime, type TailRow, toMark, toRow } from "./tail-rows";

export const TAIL_CREDIT: Credit = { records: 500, bytes: 2 * 1024 * 1024 };
export const ROWS_MAX = 1_000;
const RATE_WINDOW_MS = 3_000;

export type TailPhase = "starting" | "reading" | "caught-up" | "interrupted" | "failed";

export interface TailState {
  phase: TailPhase;
  isPaused: boolean;
  rows: readonly TailRow[];
  receivedCount: number;
  heldCount: number;
  ratePerSecond: number;
  message: string | null;
  /** Next offset of each partition as far as it is known. */
  nextOffsets: ReadonlyMap<number, bigint>;
}

const INITIAL: TailState = {
  phase: "starting",
  isPaused: false,
  rows: [],
  receivedCount: 0,
  heldCount: 0,
  ratePerSecond: 0,
  message: null,
  nextOffsets: new Map(),
};

export interface TailSurroundings {
  open: (listener: (event: LiveEvent) => void) => TailHandle;
  nowMs: () => number;
  /** Runs the work soon, once: records come faster than a screen can show them. */
  schedule: (work: () => void) => void;
}

export class TailStore {
  private state = INITIAL;
  private readonly listeners = new Set<() => void>();
  private readonly handle: TailHandle;
  private incoming: TailRow[] = [];
  private held: TailRow[] = [];
  private arrivals: { atMs: number; count: number }[] = [];
  private remaining: Credit = { ...TAIL_CREDIT };
  private isScheduled = false;

  constructor(private readonly around: TailSurroundings) {
    this.handle = around.open(this.onEvent);
  }

  getState = (): TailState => this.state;

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  close = (): void => this.handle.close();

  pause = (): void => this.change({ isPaused: true });

  resume = (): void => {
    this.incoming = [...this.incoming, ...this.held];
    this.held = [];
    this.change({ isPaused: false, heldCount: 0 });
    this.topUpCredit();
    this.flush();
  };

  clear = (): void => this.change({ rows: [], receivedCount: 0 });

  /** Lets the shown rate fall when nothing arrives. */
  tick = (): void => {
    const ratePerSecond = this.currentRate();
    if (ratePerSecond !== this.state.ratePerSecond) this.change({ ratePerSecond });
  };

  private readonly onEvent = (event: LiveEvent): void => {
    switch (event.kind) {
      case "subscribed":
        this.remaining = { ...TAIL_CREDIT };
        return this.change({ phase: "reading", message: null, nextOffsets: positionsOf(event.positions) });
      case "records":
        return this.onRecords(event.records, event.gaps, event.remaining);
      case "caught-up":
        return this.change({ phase: "caught-up" });
      case "interrupted":
        return this.change({ phase: "interrupted" });
      case "failed":
        return this.change({ phase: event.willRetry ? "interrupted" : "failed", message: event.message });
      case "partitions":
        return;
    }
  };

  private onRecords(records: LogRecord[], gaps: Gap[], remaining: Partial<Credit>): void {
    this.remaining = {
      records: remaining.records ?? this.remaining.records - records.length,
      bytes: remaining.bytes ?? this.remaining.bytes,
    };
    (this.state.isPaused ? this.held : this.incoming).push(...gaps.map(toMark), ...records.map(toRow));
    this.arrivals.push({ atMs: this.around.nowMs(), count: records.length });
    this.topUpCredit();
    if (this.isScheduled) return;
    this.isScheduled = true;
    this.around.schedule(this.flush);
  }

  private topUpCredit(): void {
    const isLow = this.remaining.records * 2 < TAIL_CREDIT.records || this.remaining.bytes * 2 < TAIL_CREDIT.bytes;
    if (this.state.isPaused || !isLow) return;
    this.handle.grant({
      records: Math.max(0, TAIL_CREDIT.records - this.remaining.records),
      bytes: Math.max(0, TAIL_CREDIT.bytes - this.remaining.bytes),
    });
    this.remaining = { ...TAIL_CREDIT };
  }

  private readonly flush = (): void => {
    this.isScheduled = false;
    const fresh = mergedByTime(this.incoming);
    this.incoming = [];
    this.change({
      rows: fresh.length ? [...fresh.reverse(), ...this.state.rows].slice(0, ROWS_MAX) : this.state.rows,
      receivedCount: this.state.receivedCount + fresh.filter((row) => row.kind === "record").length,
      heldCount: this.held.length,
      ratePerSecond: this.currentRate(),
      nextOffsets: advanced(this.state.nextOffsets, fresh),
    });
  };

  private currentRate(): number {
    const fromMs = this.around.nowMs() - RATE_WINDOW_MS;
    this.arrivals = this.arrivals.filter(({ atMs }) => atMs > fromMs);
    return this.arrivals.reduce((sum, { count }) => sum + count, 0) / (RATE_WINDOW_MS / 1_000);
  }

  private change(change: Partial<TailState>): void {
    this.state = { ...this.state, ...change };
    this.listeners.forEach((listener) => listener());
  }
}

const positionsOf = (positions: Record<string, string>): Map<number, bigint> =>
  new Map(Object.entries(positions).map(([partition, offset]) => [Number(partition), BigInt(offset)]));

function advanced(before: ReadonlyMap<number, bigint>, newestFirst: TailRow[]): ReadonlyMap<number, bigint> {
  if (newestFirst.length === 0) return before;
  const next = new Map(before);
  for (const row of [...newestFirst].reverse()) {
    if (row.kind === "record") next.set(row.record.partition, BigInt(row.record.offset) + 1n);
  }
  return next;
}
