// The cluster's health in words, and its rates. Pure.
import type { BrokerRow, Cluster } from "../../api/types";
import type { ChipTone } from "../../components/controls";

export interface Verdict {
  tone: ChipTone;
  text: string;
}

const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

/** The one thing that an operator should know first. */
export function verdictOf(cluster: Cluster): Verdict {
  const { leaderless, under_min_isr, under_replicated, moving } = cluster.partitions;
  const absent = cluster.brokers.filter((broker) => broker.status === "down" || broker.status === "fenced");
  const names = absent.map((broker) => broker.id).join(", ");
  const damaged = cluster.brokers.reduce((sum, broker) => sum + damagedCount(broker), 0);
  if (leaderless) return { tone: "bad", text: `${counted(leaderless, "partition", "partitions")} without a leader` };
  if (under_min_isr) return { tone: "bad", text: `${counted(under_min_isr, "partition", "partitions")} under min ISR` };
  if (cluster.quorum.leader === null) return { tone: "bad", text: "No controller" };
  if (damaged) return { tone: "bad", text: `${counted(damaged, "log", "logs")} damaged on disk` };
  if (absent.length) return { tone: "warn", text: `Broker ${names} ${absent.length === 1 ? "is" : "are"} away` };
  if (under_replicated)
    return { tone: "warn", text: `${counted(under_replicated, "partition", "partitions")} under-replicated` };
  if (moving) return { tone: "accent", text: `${counted(moving, "partition", "partitions")} moving` };
  return { tone: "ok", text: "All is well" };
}

/** Of logs that rotted and were not mended; what a broker said before it went tells nothing. */
export const damagedCount = (broker: BrokerRow): number => (broker.status === "down" ? 0 : (broker.damaged_count ?? 0));

export interface Totals {
  atMs: number;
  bytesIn: bigint;
  bytesOut: bigint;
}

export const totalsOf = (broker: BrokerRow, atMs: number): Totals | null =>
  broker.bytes_in === null || broker.bytes_out === null
    ? null
    : { atMs, bytesIn: BigInt(broker.bytes_in), bytesOut: BigInt(broker.bytes_out) };

export interface Rates {
  in: bigint;
  out: bigint;
}

/** Bytes per second. null = one look is no rate, and a restart begins the totals anew. */
export function ratesBetween(first: Totals | undefined, last: Totals | null): Rates | null {
  if (!first || !last || last.atMs <= first.atMs) return null;
  if (last.bytesIn < first.bytesIn || last.bytesOut < first.bytesOut) return null;
  const perSecond = (bytes: bigint): bigint => (bytes * 1_000n) / BigInt(last.atMs - first.atMs);
  return { in: perSecond(last.bytesIn - first.bytesIn), out: perSecond(last.bytesOut - first.bytesOut) };
}

/** "84 s", "12 min", "3 h". */
export function formatSeconds(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}

export const placeText = ({ tenant, topic, partition }: { tenant: string; topic: string; partition: number }): string =>
  `${tenant ? `${tenant}/` : ""}${topic} · ${partition}`;

export const brokersText = (brokers: readonly number[]): string => (brokers.length ? brokers.join(", ") : "–");

const MIB = 1_048_576;

/** "" = without a limit, null = not a number that makes sense. */
export function throttleBytes(mebibytesPerSecond: string): number | undefined | null {
  if (mebibytesPerSecond.trim() === "") return undefined;
  const value = Number(mebibytesPerSecond);
  return Number.isFinite(value) && value * MIB >= 1_024 ? Math.round(value * MIB) : null;
}
