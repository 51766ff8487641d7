import { describe, expect, it } from "vitest";
import { secondsText } from "../../components/lag";
import type { RebalanceEvent } from "../../api/types";
import { eventText, millisText, rangesText, toneOfEvent } from "./words";

const event = (changes: Partial<RebalanceEvent>): RebalanceEvent => ({
  at_ms: 0,
  kind: "joined",
  member: "app-1f",
  client_id: "app",
  generation: 3,
  duration_ms: null,
  moved_count: null,
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

  it("of a kind that is new to us are shown all the same", () => {
    expect(eventText(event({ kind: "moon_rose" }))).toBe("moon rose");
    expect(toneOfEvent("moon_rose")).toBe("note");
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
