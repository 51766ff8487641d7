// Geometry of the offset rail: where log start, high watermark, log end and each replica stand on a line. Pure.
//
// The line runs from log start to log end. What matters, how far replicas trail, is tiny beside a long log; so when it
// would vanish, the last part of the line is a magnified tail and the break between the two scales is marked.
import { fractionBetween, type Int64Text, toBig } from "../../api/int64";
import type { PartitionRow, Replica } from "../../api/types";

export interface RailTick {
  broker: number;
  position: number;
  isLeader: boolean;
  isInSync: boolean;
  lag: bigint;
}

export interface Rail {
  /** Length of the line, 0 to 1, against the largest partition of the topic: skew shows at a glance. */
  length: number;
  highWatermark: number;
  ticks: RailTick[];
  /** Where the magnified tail begins; null = one scale all along. */
  breakAt: number | null;
  isEmpty: boolean;
}

const TAIL_WIDTH = 0.35;
const LINEAR_FROM = 0.08;
const LENGTH_MIN = 0.12;

export function railOf(row: PartitionRow, largestCount: bigint): Rail {
  const start = logStart(row);
  const end = logEnd(row);
  const place = scaleOf(row, start, end);
  return {
    length: end === start ? 1 : Math.max(LENGTH_MIN, fractionBetween(end - start, 0n, largestCount)),
    highWatermark: place.at(highWatermark(row)),
    ticks: row.replicas.flatMap((replica) => tickOf(replica, row, end, place)),
    breakAt: place.breakAt,
    isEmpty: end === start,
  };
}

/** Where a replica's log ends is not known before it has fetched: then nothing is drawn. */
function tickOf(replica: Replica, row: PartitionRow, end: bigint, place: Scale): RailTick[] {
  if (replica.log_end_offset === null) return [];
  const offset = toBig(replica.log_end_offset);
  return [
    {
      broker: replica.broker,
      isLeader: replica.broker === row.leader,
      isInSync: replica.in_sync,
      lag: end - offset,
      position: place.at(offset),
    },
  ];
}

interface Scale {
  at: (offset: bigint) => number;
  breakAt: number | null;
}

function scaleOf(row: PartitionRow, start: bigint, end: bigint): Scale {
  const lowest = lowestOf(row, end);
  const trail = end - lowest;
  const linear = (offset: bigint): number => fractionBetween(offset, start, end);
  if (trail === 0n || 1 - linear(lowest) >= LINEAR_FROM) return { at: linear, breakAt: null };
  const head = 1 - TAIL_WIDTH;
  return {
    breakAt: head,
    at: (offset) =>
      offset < lowest
        ? fractionBetween(offset, start, lowest) * head
        : head + fractionBetween(offset, lowest, end) * TAIL_WIDTH,
  };
}

function lowestOf(row: PartitionRow, end: bigint): bigint {
  const known = row.replicas.flatMap(({ log_end_offset }) => (log_end_offset === null ? [] : [toBig(log_end_offset)]));
  return [highWatermark(row), ...known].reduce((low, offset) => (offset < low ? offset : low), end);
}

// What nobody has told yet counts as nothing: the rail is empty until then.
const known = (offset: Int64Text | null): bigint => (offset === null ? 0n : toBig(offset));

export const logStart = (row: PartitionRow): bigint => known(row.log_start_offset);

export const highWatermark = (row: PartitionRow): bigint => known(row.high_watermark);

/** Where the end is not known, what readers see is all there is to draw. */
export const logEnd = (row: PartitionRow): bigint => known(row.log_end_offset ?? row.high_watermark);

export const recordsIn = (row: PartitionRow): bigint => highWatermark(row) - logStart(row);
