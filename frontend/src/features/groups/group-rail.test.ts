import { describe, expect, it } from "vitest";
import type { GroupPartition } from "../../api/types";
import { groupRailOf } from "./group-rail";

const row = (changes: Partial<GroupPartition>): GroupPartition => ({
  topic: "orders",
  partition: 0,
  status: "ok",
  words: "",
  owner: null,
  committed: null,
  commit_ms: null,
  metadata: null,
  commit_rate: null,
  position: null,
  position_doubt: null,
  repeat_count: null,
  log_start_offset: "0",
  high_watermark: "100",
  last_stable_offset: "100",
  lag: null,
  lag_seconds: null,
  trend: "steady",
  eta_seconds: null,
  lag_points: [],
  ...changes,
});

describe("a group's rail", () => {
  it("puts the offsets where they are in the log", () => {
    const rail = groupRailOf(row({ committed: "40", position: "55" }));
    expect(rail).toMatchObject({ committed: 0.4, position: 0.55, breakAt: null, isEmpty: false });
  });

  it("ends at the high watermark where all is read", () => {
    expect(groupRailOf(row({ committed: "100" }))).toMatchObject({ committed: 1, breakAt: null });
  });

  it("magnifies a lag that would vanish beside a long log", () => {
    const rail = groupRailOf(row({ high_watermark: "9007199254740993", committed: "9007199254740900" }));
    expect(rail.breakAt).toBe(0.6);
    expect(rail.committed).toBeCloseTo(0.64);
    expect(rail.committed).toBeLessThan(1);
  });

  it("draws nothing of a log of which nothing is known", () => {
    expect(groupRailOf(row({ high_watermark: null })).isEmpty).toBe(true);
    expect(groupRailOf(row({ high_watermark: "0" })).isEmpty).toBe(true);
  });

  it("says when retention was faster than the group", () => {
    expect(groupRailOf(row({ log_start_offset: "50", committed: "40" })).isBelowStart).toBe(true);
  });
});
