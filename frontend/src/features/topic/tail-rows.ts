// Rows of the live tail. Pure.
import type { Gap } from "../../api/live/position";
import type { LogRecord } from "../../api/types";

export type TailRow = { kind: "record"; id: string; record: LogRecord } | { kind: "mark"; id: string; gap: Gap };

export const rowId = (partition: number, offset: string): string => `${partition}-${offset}`;
export const toRow = (record: LogRecord): TailRow => ({
  kind: "record",
  id: rowId(record.partition, record.offset),
  record,
});
export const toMark = (gap: Gap): TailRow => ({ kind: "mark", id: `gap-${gap.partition}-${gap.from}`, gap });

/**
 * Oldest first across partitions, by timestamp; within a partition the order of the log is never touched, whatever
 * its timestamps say. Batches come partition by partition, people read by time.
 */
export function mergedByTime(rows: readonly TailRow[]): TailRow[] {
  const lanes = new Map<number, TailRow[]>();
  for (const row of rows) {
    const partition = row.kind === "record" ? row.record.partition : row.gap.partition;
    const lane = lanes.get(partition);
    if (lane) lane.push(row);
    else lanes.set(partition, [row]);
  }
  return lanes.size < 2 ? [...rows] : interleave([...lanes.values()]);
}

function interleave(lanes: TailRow[][]): TailRow[] {
  const timed = lanes.flatMap((lane) => {
    let latestMs = -Infinity;
    return lane.map((row) => {
      if (row.kind === "record") latestMs = Math.max(latestMs, row.record.timestamp);
      return { row, atMs: latestMs };
    });
  });
  // A running maximum never falls within a lane, and the sort is stable: so lanes keep their order.
  return timed.sort((a, b) => a.atMs - b.atMs).map(({ row }) => row);
}
