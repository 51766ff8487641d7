// Geometry of a group's rail in one partition: log start, committed offset, position and high watermark on a line. Pure.
//
// The line is the log, from its start to the high watermark. What matters, the part that is not read yet, is tiny beside
// a long log: where it would vanish, the last part of the line is magnified, and the break between both scales marked.
import { fractionBetween, toBig } from "../../api/int64";
import type { GroupPartition } from "../../api/types";

export interface GroupRail {
  /** 0 to 1; null = not known. */
  committed: number | null;
  position: number | null;
  /** The last stable offset, where an open transaction holds read_committed readers back; null = nowhere. */
  stable: number | null;
  /** Where the magnified end begins; null = one scale all along. */
  breakAt: number | null;
  /** Nothing in the log, or nothing known of it. */
  isEmpty: boolean;
  /** What is committed lies before the log's start: retention was faster. */
  isBelowStart: boolean;
}

const TAIL_WIDTH = 0.4;
const LINEAR_FROM = 0.1;

export function groupRailOf(row: GroupPartition): GroupRail {
  const start = row.log_start_offset === null ? null : toBig(row.log_start_offset);
  const end = row.high_watermark === null ? null : toBig(row.high_watermark);
  if (start === null || end === null || end <= start) {
    return { committed: null, position: null, stable: null, breakAt: null, isEmpty: true, isBelowStart: false };
  }
  const committed = row.committed === null ? null : toBig(row.committed);
  const position = row.position === null ? null : toBig(row.position);
  const stable = row.last_stable_offset === null ? end : toBig(row.last_stable_offset);
  const { at, breakAt } = scaleOf(start, lowestOf(committed, position, stable, end), end);
  return {
    committed: committed === null ? null : at(committed),
    position: position === null ? null : at(position),
    stable: stable < end ? at(stable) : null,
    breakAt,
    isEmpty: false,
    isBelowStart: committed !== null && committed < start,
  };
}

function lowestOf(...offsets: [...(bigint | null)[], bigint]): bigint {
  return offsets.filter((offset) => offset !== null).reduce((low, offset) => (offset < low ? offset : low));
}

function scaleOf(
  start: bigint,
  lowest: bigint,
  end: bigint,
): { at: (offset: bigint) => number; breakAt: number | null } {
  const linear = (offset: bigint): number => fractionBetween(offset, start, end);
  if (lowest >= end || lowest <= start || 1 - linear(lowest) >= LINEAR_FROM) return { at: linear, breakAt: null };
  const head = 1 - TAIL_WIDTH;
  // The break is a little before the lowest mark, so that the mark stands on the magnified side.
  const at = (offset: bigint): number =>
    offset < lowest
      ? fractionBetween(offset, start, lowest) * head
      : head + 0.04 + fractionBetween(offset, lowest, end) * (TAIL_WIDTH - 0.04);
  return { at, breakAt: head };
}
