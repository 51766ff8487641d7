// Geometry of the rebalance timeline: events and rebalances on one axis of time. Pure.
import type { RebalanceEvent } from "../../api/types";
import { type EventTone, toneOfEvent } from "./words";

export interface TimelineMark {
  event: RebalanceEvent;
  tone: EventTone;
  /** 0 to 1. */
  at: number;
  /** Of a rebalance: how much of the axis it took. */
  width: number;
}

export interface TimelinePicture {
  fromMs: number;
  toMs: number;
  marks: TimelineMark[];
  ticks: { at: number; label: string }[];
}

const SPAN_MIN_MS = 60_000;
const EDGE = 0.03;
const STEPS_MS = [10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000];
const TICKS_MAX = 7;

export function timelineOf(events: readonly RebalanceEvent[], nowMs: number): TimelinePicture | null {
  if (events.length === 0) return null;
  const firstMs = Math.min(...events.map((event) => event.at_ms - (event.duration_ms ?? 0)));
  const spanMs = Math.max(SPAN_MIN_MS, nowMs - firstMs);
  const fromMs = nowMs - spanMs * (1 + EDGE);
  const at = (ms: number): number => (ms - fromMs) / (nowMs - fromMs);
  const marks = events.map((event) => ({
    event,
    tone: toneOfEvent(event.kind),
    at: at(event.at_ms - (event.duration_ms ?? 0)),
    width: (event.duration_ms ?? 0) / (nowMs - fromMs),
  }));
  return { fromMs, toMs: nowMs, marks, ticks: ticksOf(fromMs, nowMs, at) };
}

function ticksOf(fromMs: number, toMs: number, at: (ms: number) => number): TimelinePicture["ticks"] {
  const stepMs = STEPS_MS.find((step) => (toMs - fromMs) / step <= TICKS_MAX) ?? 7 * 86_400_000;
  const ticks = [];
  for (let agoMs = 0; agoMs < toMs - fromMs; agoMs += stepMs) {
    ticks.push({ at: at(toMs - agoMs), label: agoMs === 0 ? "now" : `−${agoText(agoMs)}` });
  }
  return ticks;
}

function agoText(agoMs: number): string {
  if (agoMs < 60_000) return `${agoMs / 1_000} s`;
  if (agoMs < 3_600_000) return `${agoMs / 60_000} min`;
  return agoMs < 86_400_000 ? `${agoMs / 3_600_000} h` : `${agoMs / 86_400_000} d`;
}
