// The choices of the reset wizard and the request that they make. Pure.
import type { ResetTo, ResetWish } from "../../api/types";

export interface ResetForm {
  /** "" = every topic in which the group has an offset. */
  topic: string;
  /** "" = all partitions; else "0, 2-4". */
  partitions: string;
  to: ResetTo;
  time: string;
  amount: string;
  unit: "minutes" | "hours" | "days";
  offset: string;
  shift: string;
  csv: string;
}

export const EMPTY_FORM: ResetForm = {
  topic: "",
  partitions: "",
  to: "earliest",
  time: "",
  amount: "1",
  unit: "hours",
  offset: "",
  shift: "-100",
  csv: "",
};

const UNIT_MS = { minutes: 60_000, hours: 3_600_000, days: 86_400_000 };

export type Made = { wish: ResetWish } | { field: keyof ResetForm; problem: string };

export function wishOf(form: ResetForm): Made {
  const target = targetOf(form);
  if ("problem" in target || form.to === "file" || !form.topic) return target;
  const partitions = parsePartitions(form.partitions);
  if (partitions === null) return { field: "partitions", problem: "Numbers and ranges, such as 0, 2-4" };
  const scope = partitions.length ? { topic: form.topic, partitions } : { topic: form.topic };
  return { wish: { ...target.wish, topics: [scope] } };
}

function targetOf(form: ResetForm): Made {
  switch (form.to) {
    case "timestamp": {
      const timestamp_ms = Date.parse(form.time);
      return Number.isNaN(timestamp_ms)
        ? { field: "time", problem: "Choose a date and a time" }
        : { wish: { to: "timestamp", timestamp_ms } };
    }
    case "duration": {
      const amount = Number(form.amount);
      return form.amount.trim() && amount >= 0 && Number.isFinite(amount)
        ? { wish: { to: "duration", duration_ms: Math.round(amount * UNIT_MS[form.unit]) } }
        : { field: "amount", problem: "How long ago?" };
    }
    case "offset":
      return /^\d{1,19}$/.test(form.offset.trim())
        ? { wish: { to: "offset", offset: form.offset.trim() } }
        : { field: "offset", problem: "A whole number" };
    case "shift":
      return /^[-+]?\d{1,15}$/.test(form.shift.trim())
        ? { wish: { to: "shift", shift: Number(form.shift) } }
        : { field: "shift", problem: "A whole number; negative to read again" };
    case "file":
      return form.csv.trim()
        ? { wish: { to: "file", csv: form.csv } }
        : { field: "csv", problem: "Choose or paste a file" };
    default:
      return { wish: { to: form.to } };
  }
}

const PARTITIONS_MAX = 10_000;

/** Empty = all; null = not understood. */
export function parsePartitions(text: string): number[] | null {
  const found = new Set<number>();
  for (const part of text.split(",").map((each) => each.trim())) {
    if (!part) continue;
    const range = /^(\d{1,6})(?:\s*[-–]\s*(\d{1,6}))?$/.exec(part);
    if (!range) return null;
    const from = Number(range[1]);
    const to = range[2] === undefined ? from : Number(range[2]);
    if (to < from || to - from > PARTITIONS_MAX) return null;
    for (let number = from; number <= to; number += 1) found.add(number);
  }
  return [...found].sort((a, b) => a - b);
}
