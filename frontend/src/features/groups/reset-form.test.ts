import { describe, expect, it } from "vitest";
import { asShown } from "../../api/groups";
import { EMPTY_FORM, parsePartitions, type ResetForm, wishOf } from "./reset-form";

const made = (changes: Partial<ResetForm>) => wishOf({ ...EMPTY_FORM, ...changes });

describe("a reset's request", () => {
  it("is for everything unless a topic is chosen", () => {
    expect(made({})).toEqual({ wish: { to: "earliest" } });
    expect(made({ topic: "orders" })).toEqual({ wish: { to: "earliest", topics: [{ topic: "orders" }] } });
    expect(made({ topic: "orders", partitions: "0, 2-4" })).toEqual({
      wish: { to: "earliest", topics: [{ topic: "orders", partitions: [0, 2, 3, 4] }] },
    });
  });

  it("carries what its target needs, and nothing else", () => {
    expect(made({ to: "duration", amount: "1.5", unit: "hours" })).toEqual({
      wish: { to: "duration", duration_ms: 5_400_000 },
    });
    expect(made({ to: "offset", offset: "9007199254740993" })).toEqual({
      wish: { to: "offset", offset: "9007199254740993" },
    });
    expect(made({ to: "shift", shift: "-20" })).toEqual({ wish: { to: "shift", shift: -20 } });
    expect(made({ to: "timestamp", time: "2026-01-05T10:00:00Z" })).toEqual({
      wish: { to: "timestamp", timestamp_ms: 1_767_607_200_000 },
    });
    expect(made({ to: "file", csv: "orders,0,5", topic: "ignored" })).toEqual({
      wish: { to: "file", csv: "orders,0,5" },
    });
  });

  it("names the field that is wrong", () => {
    expect(made({ to: "offset", offset: "-1" })).toMatchObject({ field: "offset" });
    expect(made({ to: "shift", shift: "a" })).toMatchObject({ field: "shift" });
    expect(made({ to: "timestamp" })).toMatchObject({ field: "time" });
    expect(made({ to: "duration", amount: "" })).toMatchObject({ field: "amount" });
    expect(made({ topic: "orders", partitions: "zero" })).toMatchObject({ field: "partitions" });
  });

  it("that is carried out has exactly the offsets that were shown", () => {
    const step = {
      topic: "orders",
      partition: 3,
      before: "9",
      after: "5",
      log_start_offset: "0",
      high_watermark: "9",
      skipped_count: "0",
      replayed_count: "4",
      preview: null,
    };
    expect(asShown([step, { ...step, partition: 4 }])).toEqual({ to: "file", csv: "orders,3,5\norders,4,5\n" });
  });
});

describe("partitions", () => {
  it("are numbers and ranges", () => {
    expect(parsePartitions("")).toEqual([]);
    expect(parsePartitions("3,1, 1-2")).toEqual([1, 2, 3]);
    expect(parsePartitions("4-2")).toBeNull();
    expect(parsePartitions("1;2")).toBeNull();
  });
});
