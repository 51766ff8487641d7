import { expect, it } from "vitest";
import type { Topic } from "../../api/types";
import { addSamples, type RateHistory, ratePerSecond, sparkline } from "./rates";

const orders = (record_count: string) => ({ name: "orders", record_count }) as Topic;

function historyOf(counts: string[]): RateHistory {
  let history: RateHistory = new Map();
  counts.forEach((count, index) => {
    history = addSamples(history, [orders(count)], index * 1_000);
  });
  return history;
}

it("one sample is no rate, two are", () => {
  expect(ratePerSecond(historyOf(["5"]).get("orders") ?? [])).toBeNull();
  expect(ratePerSecond(historyOf(["5", "105"]).get("orders") ?? [])).toBe(100);
});

it("retention does not count as negative writing", () => {
  expect(sparkline(historyOf(["10", "4", "9"]).get("orders") ?? [])).toEqual([0, 5]);
});

it("a deleted topic is forgotten, an unchanged answer adds nothing", () => {
  const history = historyOf(["1", "2"]);
  expect(addSamples(history, [orders("2")], 1_000).get("orders")).toHaveLength(2);
  expect(addSamples(history, [], 2_000).size).toBe(0);
});
