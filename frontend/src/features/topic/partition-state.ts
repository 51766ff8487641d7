// What is wrong with a partition, or under way, in words. Pure.
import type { PartitionRow } from "../../api/types";
import type { ChipTone } from "../../components/controls";

export interface PartitionState {
  label: string;
  tone: ChipTone;
  title: string;
}

const LEADERLESS: PartitionState = {
  label: "without a leader",
  tone: "bad",
  title: "No replica may lead: records can be neither written nor read until a broker comes back",
};
const UNDER_MIN_ISR: PartitionState = {
  label: "under min ISR",
  tone: "bad",
  title: "Too few replicas are in sync: writes with acks=all are refused",
};
const UNDER_REPLICATED: PartitionState = {
  label: "under-replicated",
  tone: "warn",
  title: "A replica is out of sync: nothing is lost, but one copy is missing",
};
const MOVING: PartitionState = { label: "moving", tone: "accent", title: "Replicas are being copied to other brokers" };

/** Worst first. */
const STATES: [PartitionState, (row: PartitionRow) => boolean][] = [
  [LEADERLESS, (row) => row.leader === null],
  [UNDER_MIN_ISR, (row) => row.min_insync !== null && row.isr.length < row.min_insync],
  [UNDER_REPLICATED, (row) => row.osr.some((broker) => !row.adding.includes(broker))],
  [MOVING, (row) => row.adding.length + row.removing.length > 0],
];

/** null = all is well. */
export const stateOf = (row: PartitionRow): PartitionState | null => STATES.find(([, isIn]) => isIn(row))?.[0] ?? null;

/** The worst state that any partition is in, and how many are in it. */
export function worstOf(rows: PartitionRow[]): { state: PartitionState; count: number } | null {
  for (const [state] of STATES) {
    const count = rows.filter((row) => stateOf(row) === state).length;
    if (count) return { state, count };
  }
  return null;
}
