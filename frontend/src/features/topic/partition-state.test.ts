import { describe, expect, it } from "vitest";
import type { PartitionRow } from "../../api/types";
import { stateOf, worstOf } from "./partition-state";

const row = (changes: Partial<PartitionRow> = {}): PartitionRow => ({
  partition: 0,
  leader: 1,
  leader_epoch: 1,
  partition_epoch: 1,
  replicas: [1, 2, 3].map((broker) => ({ broker, in_sync: true, log_end_offset: "5" })),
  isr: [1, 2, 3],
  osr: [],
  elr: [],
  adding: [],
  removing: [],
  min_insync: 2,
  unclean_election_count: 0,
  log_start_offset: "0",
  high_watermark: "5",
  last_stable_offset: "5",
  log_end_offset: "5",
  size_bytes: "1",
  ...changes,
});

describe("the state of a partition", () => {
  it("says nothing when all is well", () => {
    expect(stateOf(row())).toBeNull();
    expect(worstOf([row(), row()])).toBeNull();
  });

  it("names the worst first", () => {
    expect(stateOf(row({ leader: null, isr: [], osr: [1, 2, 3] }))?.label).toBe("without a leader");
    expect(stateOf(row({ isr: [1], osr: [2, 3] }))?.label).toBe("under min ISR");
    expect(stateOf(row({ isr: [1, 2], osr: [3] }))?.label).toBe("under-replicated");
  });

  it("does not call a replica missing that is on its way", () => {
    expect(stateOf(row({ isr: [1, 2], osr: [3], adding: [3] }))?.label).toBe("moving");
  });

  it("counts what is in the worst state", () => {
    const rows = [row({ isr: [1, 2], osr: [3] }), row({ isr: [1], osr: [2, 3] }), row({ isr: [2], osr: [1, 3] })];
    expect(worstOf(rows)).toMatchObject({ count: 2, state: { label: "under min ISR" } });
  });
});
