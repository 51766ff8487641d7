import { describe, expect, it } from "vitest";
import type { PartitionRow } from "../../api/types";
import { railOf } from "./rail";

const row = (highWatermark: string, ends: (string | null)[], end: string, start = "0"): PartitionRow => ({
  partition: 0,
  leader: 0,
  leader_epoch: 1,
  replicas: ends.map((log_end_offset, broker) => ({ broker, in_sync: true, log_end_offset })),
  partition_epoch: 1,
  isr: [],
  osr: [],
  elr: [],
  adding: [],
  removing: [],
  min_insync: 1,
  unclean_election_count: 0,
  log_start_offset: start,
  high_watermark: highWatermark,
  last_stable_offset: highWatermark,
  log_end_offset: end,
  size_bytes: "0",
});

describe("the offset rail", () => {
  it("puts everything at the end when all replicas have everything", () => {
    const rail = railOf(row("100", ["100", "100"], "100"), 100n);
    expect(rail).toMatchObject({ highWatermark: 1, breakAt: null, length: 1 });
    expect(rail.ticks.map((tick) => tick.position)).toEqual([1, 1]);
  });

  it("uses one scale while the trail is large enough to see", () => {
    const rail = railOf(row("50", ["100", "50"], "100"), 100n);
    expect(rail).toMatchObject({ highWatermark: 0.5, breakAt: null });
  });

  it("magnifies a trail of three records behind a billion", () => {
    const rail = railOf(row("1000000000", ["1000000003", "1000000000"], "1000000003"), 1000000003n);
    expect(rail.breakAt).toBe(0.65);
    expect(rail.highWatermark).toBe(0.65);
    expect(rail.ticks.map((tick) => tick.lag)).toEqual([0n, 3n]);
  });

  it("draws what readers see when the end is not known", () => {
    expect(railOf({ ...row("50", [null], "0"), log_end_offset: null }, 50n)).toMatchObject({
      highWatermark: 1,
      isEmpty: false,
    });
  });

  it("draws nothing of a partition that nobody leads and nobody told of", () => {
    const untold = { ...row("0", [null], "0"), leader: null, log_start_offset: null, high_watermark: null };
    expect(railOf({ ...untold, log_end_offset: null }, 50n)).toMatchObject({ isEmpty: true });
  });

  it("survives an empty partition and unknown followers", () => {
    const rail = railOf(row("7", [null, null], "7", "7"), 100n);
    expect(rail.isEmpty).toBe(true);
    expect(rail.ticks).toEqual([]);
  });
});
