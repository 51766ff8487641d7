import { describe, expect, it } from "vitest";
import { groupRailOf } from "./group-rail";
import { partitionRow as row } from "./partition-row";

describe("a group's rail", () => {
  it("puts the offsets where they are in the log", () => {
    const rail = groupRailOf(row({ committed: "40", position: "55" }));
    expect(rail).toMatchObject({ committed: 0.4, position: 0.55, breakAt: null, isEmpty: false });
  });

  it("ends at the high watermark where all is read", () => {
    expect(groupRailOf(row({ committed: "100" }))).toMatchObject({ committed: 1, breakAt: null });
  });

  it("marks where an open transaction holds readers back, and nothing where none does", () => {
    expect(groupRailOf(row({ committed: "40", last_stable_offset: "80" })).stable).toBe(0.8);
    expect(groupRailOf(row({ committed: "40", last_stable_offset: "100" })).stable).toBeNull();
    expect(groupRailOf(row({ committed: "40" })).stable).toBeNull();
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
