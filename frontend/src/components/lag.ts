// Lag in words, and where groups and their records are to be found.
import { formatCount, type Int64Text } from "../api/int64";

const UNITS: [seconds: number, name: string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
];

/** "0 s", "47 s", "3 min", "2 h": as precise as one wants to know it. */
export function secondsText(seconds: number | null): string {
  if (seconds === null) return "–";
  if (seconds < 0.95) return "0 s";
  const unit = UNITS.find(([size]) => seconds >= 2 * size);
  return unit ? `${Math.floor(seconds / unit[0])} ${unit[1]}` : `${Math.round(seconds)} s`;
}

export const lagText = (lag: Int64Text | null): string => (lag === null ? "–" : formatCount(lag));

export const recordsText = (count: Int64Text | number | bigint): string =>
  `${formatCount(count)} ${BigInt(count) === 1n ? "record" : "records"}`;

/** The messages of a partition from an offset on. */
export const messageHref = (topic: string, partition: number, offset: Int64Text): string =>
  `/topics/${encodeURIComponent(topic)}/messages?from=offset&offset=${offset}&partition=${partition}`;
