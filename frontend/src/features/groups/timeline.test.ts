import { describe, expect, it } from "vitest";
import type { RebalanceEvent } from "../../api/types";
import { timelineOf } from "./timeline";

const event = (at_ms: number, changes: Partial<RebalanceEvent> = {}): RebalanceEvent => ({
  at_ms,
  kind: "joined",
  member: "m",
  client_id: "app",
  generation: 1,
  duration_ms: null,
  moved_count: null,
  topics: [],
  dropped_topics: [],
  unnamed_count: 0,
  partitions_before: null,
  partitions_after: null,
  ...changes,
});

describe("the timeline", () => {
  it("has no picture of nothing", () => {
    expect(timelineOf([], 1_000)).toBeNull();
  });

  it("ends now and begins a little before the first event", () => {
    const picture = timelineOf([event(1_000_000), event(1_300_000)], 1_600_000);
    expect(picture?.toMs).toBe(1_600_000);
    expect(picture?.marks[0]?.at).toBeGreaterThan(0);
    expect(picture?.marks[0]?.at).toBeLessThan(0.05);
    expect(picture?.marks[1]?.at).toBeCloseTo(0.51, 1);
  });

  it("draws a rebalance from where it began, as long as it took", () => {
    const done = event(1_000_000, { kind: "rebalanced", duration_ms: 30_000 });
    const [mark] = timelineOf([done], 1_030_000)?.marks ?? [];
    expect(mark?.tone).toBe("done");
    expect((mark?.at ?? 0) + (mark?.width ?? 0)).toBeCloseTo(
      timelineOf([event(1_000_000)], 1_030_000)?.marks[0]?.at ?? 0,
      2,
    );
  });

  it("shows a minute at least, with few labels", () => {
    const picture = timelineOf([event(999_000)], 1_000_000);
    expect((picture?.toMs ?? 0) - (picture?.fromMs ?? 0)).toBeGreaterThan(60_000);
    expect(picture?.ticks.length).toBeLessThanOrEqual(8);
    expect(picture?.ticks[0]?.label).toBe("now");
  });
});
