import { expect, it } from "vitest";
import { mergedByTime, toMark, toRow } from "./tail-rows";

const row = (partition: number, offset: string, timestamp: number) =>
  toRow({ partition, offset, timestamp, key: null, value: null, headers: [] });
const ids = (rows: { id: string }[]) => rows.map(({ id }) => id);

it("reads by time across partitions", () => {
  const merged = mergedByTime([row(0, "0", 10), row(0, "1", 30), row(1, "0", 20), row(1, "1", 40)]);
  expect(ids(merged)).toEqual(["0-0", "1-0", "0-1", "1-1"]);
});

it("never reorders a partition, even when its clocks ran backwards", () => {
  const merged = mergedByTime([row(0, "0", 50), row(0, "1", 5), row(1, "0", 20)]);
  expect(ids(merged)).toEqual(["1-0", "0-0", "0-1"]);
});

it("keeps a gap mark in front of the record behind the gap", () => {
  const merged = mergedByTime([
    row(0, "0", 1),
    toMark({ partition: 0, from: 1n, to: 3n }),
    row(0, "4", 9),
    row(1, "0", 5),
  ]);
  const order = ids(merged);
  expect(order.indexOf("gap-0-1")).toBeGreaterThan(order.indexOf("0-0"));
  expect(order.indexOf("gap-0-1")).toBeLessThan(order.indexOf("0-4"));
});
