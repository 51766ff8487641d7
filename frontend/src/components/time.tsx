// Times as people say them; the exact instant is in the title.
import { useSyncExternalStore } from "react";

const SECOND_MS = 1_000;
const UNITS: [limitMs: number, unitMs: number, name: string][] = [
  [60 * SECOND_MS, SECOND_MS, "s"],
  [3_600 * SECOND_MS, 60 * SECOND_MS, "min"],
  [86_400 * SECOND_MS, 3_600 * SECOND_MS, "h"],
  [30 * 86_400 * SECOND_MS, 86_400 * SECOND_MS, "d"],
];

export function relativeTime(thenMs: number, nowMs: number): string {
  const agoMs = Math.max(0, nowMs - thenMs);
  if (agoMs < 2 * SECOND_MS) return "just now";
  const unit = UNITS.find(([limitMs]) => agoMs < limitMs);
  return unit ? `${Math.floor(agoMs / unit[1])} ${unit[2]} ago` : new Date(thenMs).toISOString().slice(0, 10);
}

const DURATIONS: [unitMs: number, name: string][] = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
  [1_000, "second"],
];

/** "7 days" where it comes out even, milliseconds where it does not. */
export function formatDuration(durationMs: number): string {
  const unit = DURATIONS.find(([unitMs]) => durationMs >= unitMs && durationMs % unitMs === 0);
  if (!unit) return `${durationMs} ms`;
  const count = durationMs / unit[0];
  return `${count} ${unit[1]}${count === 1 ? "" : "s"}`;
}

let nowMs = Date.now();
const clockListeners = new Set<() => void>();
let clockTimer: number | undefined;

function listenToClock(listener: () => void): () => void {
  clockListeners.add(listener);
  clockTimer ??= window.setInterval(() => {
    nowMs = Date.now();
    clockListeners.forEach((tell) => tell());
  }, SECOND_MS);
  return () => {
    clockListeners.delete(listener);
    if (clockListeners.size > 0) return;
    window.clearInterval(clockTimer);
    clockTimer = undefined;
  };
}

/** One timer for all the relative times on a page. */
const useNow = (): number => useSyncExternalStore(listenToClock, () => nowMs);

export function Ago({ at }: { at: number | string }) {
  const now = useNow();
  const thenMs = typeof at === "number" ? at : /^\d+$/.test(at) ? Number(at) : Date.parse(at);
  return (
    <time dateTime={new Date(thenMs).toISOString()} title={new Date(thenMs).toString()}>
      {relativeTime(thenMs, Math.max(now, thenMs))}
    </time>
  );
}

/** Local wall-clock time with milliseconds, for dense rows. */
export function clockTime(atMs: number): string {
  const at = new Date(atMs);
  const part = (value: number, width = 2): string => String(value).padStart(width, "0");
  return `${part(at.getHours())}:${part(at.getMinutes())}:${part(at.getSeconds())}.${part(at.getMilliseconds(), 3)}`;
}
