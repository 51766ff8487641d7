import { describe, expect, it } from "vitest";
import { secondsText } from "../../components/lag";
import type { RebalanceEvent } from "../../api/types";
import { partitionRow } from "./partition-row";
import {
  commitRateText,
  describeRail,
  eventText,
  groupCommitRate,
  heldBackCount,
  millisText,
  rangesText,
  toneOfEvent,
} from "./words";

const event = (changes: Partial<RebalanceEvent>): RebalanceEvent => ({
  at_ms: 0,
  kind: "joined",
  member: "app-1f",
  client_id: "app",
  generation: 3,
  duration_ms: null,
  moved_count: null,
  topics: [],
  dropped_topics: [],
  unnamed_count: 0,
  partitions_before: null,
  partitions_after: null,
  ...changes,
});

describe("events", () => {
  it("say who did what", () => {
    expect(eventText(event({}))).toBe("app joined");
    expect(eventText(event({ kind: "timed_out" }))).toBe("app was silent for too long");
    expect(eventText(event({ kind: "left", client_id: null }))).toBe("app-1f left");
  });

  it("say how long a rebalance took and what moved", () => {
    const done = event({ kind: "rebalanced", duration_ms: 3_042, moved_count: 2 });
    expect(eventText(done)).toBe("settled in 3.0 s, 2 partitions changed hands");
    expect(eventText({ ...done, moved_count: 1 })).toBe("settled in 3.0 s, 1 partition changed hands");
    expect(eventText({ ...done, moved_count: 0 })).toBe("settled in 3.0 s, no partitions changed hands");
    expect(eventText({ ...done, moved_count: null })).toBe("settled in 3.0 s");
  });

  it("name the topic that changed, and how", () => {
    const changed = (before: number, after: number): string =>
      eventText(
        event({
          kind: "partitions_changed",
          topics: ["orders"],
          partitions_before: before,
          partitions_after: after,
        }),
      );
    expect(changed(2, 4)).toBe("orders grew from 2 to 4 partitions");
    expect(changed(4, 1)).toBe("orders went from 4 to 1 partition");
    expect(changed(0, 1)).toBe("orders was made, with 1 partition");
    expect(changed(2, 0)).toBe("orders was deleted");
    expect(changed(2, 2)).toBe("orders was deleted and made again");
    const nameless = event({ kind: "partitions_changed" });
    expect(eventText(nameless)).toBe("a topic that it reads was made, deleted or grew");
    expect(eventText({ ...nameless, unnamed_count: 7 })).toBe("7 topics more that it reads changed");
  });

  it("say which topics a member subscribes to from now on, and which no longer", () => {
    const changed = event({ kind: "subscription_changed", topics: ["bills", "orders"] });
    expect(eventText(changed)).toBe("app subscribes to bills, orders");
    expect(eventText({ ...changed, dropped_topics: ["old"] })).toBe(
      "app subscribes to bills, orders, and no longer to old",
    );
    expect(eventText({ ...changed, topics: [], dropped_topics: ["old"], unnamed_count: 1 })).toBe(
      "app subscribes no longer to old (1 topic more)",
    );
    expect(eventText({ ...changed, topics: [] })).toBe("app changed what it subscribes to");
    expect(eventText(event({ kind: "rejoined" }))).toBe("app asked for a new assignment");
  });

  it("of a kind that is new to us are shown all the same", () => {
    expect(eventText(event({ kind: "moon_rose" }))).toBe("moon rose");
    expect(toneOfEvent("moon_rose")).toBe("note");
  });
});

describe("a partition's row", () => {
  it("says how often it is committed", () => {
    expect([null, 0, 0.01, 0.0166, 0.2, 9.9, 42.4].map(commitRateText)).toEqual([
      null,
      "no commits lately",
      "less than 1 commit/min",
      "1 commit/min",
      "12 commits/min",
      "594 commits/min",
      "42 commits/s",
    ]);
  });

  it("counts for its group where it is known", () => {
    expect(
      groupCommitRate([partitionRow({ commit_rate: 0.1 }), partitionRow({}), partitionRow({ commit_rate: 0.3 })]),
    ).toBe(0.4);
    expect(groupCommitRate([partitionRow({})])).toBeNull();
  });

  it("says what an open transaction holds back", () => {
    const held = partitionRow({ last_stable_offset: "9007199254740991", high_watermark: "9007199254740994" });
    expect(heldBackCount(held)).toBe(3n);
    expect(describeRail(held)).toContain("last stable offset 9,007,199,254,740,991");
    expect(heldBackCount(partitionRow({}))).toBe(0n);
    expect(heldBackCount(partitionRow({ last_stable_offset: "100" }))).toBe(0n);
    expect(describeRail(partitionRow({}))).not.toContain("stable");
  });
});

describe("times and numbers", () => {
  it("are as precise as one wants to know them", () => {
    expect([0, 0.4, 47.4, 119, 121, 7_300, 200_000].map(secondsText)).toEqual([
      "0 s",
      "0 s",
      "47 s",
      "119 s",
      "2 min",
      "2 h",
      "2 d",
    ]);
    expect(secondsText(null)).toBe("–");
    expect([40, 3_042, 42_000].map(millisText)).toEqual(["40 ms", "3.0 s", "42 s"]);
  });

  it("come as ranges", () => {
    expect(rangesText([3, 0, 1, 2, 7, 8])).toBe("0–3, 7, 8");
    expect(rangesText([])).toBe("");
  });
});
