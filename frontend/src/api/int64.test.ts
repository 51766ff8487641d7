import { describe, expect, it } from "vitest";
import { formatBytes, formatCompact, formatCount, fractionBetween, sumOf } from "./int64";

describe("int64 as text", () => {
  it("keeps every digit above 2^53", () => {
    expect(formatCount("9223372036854775807")).toBe("9,223,372,036,854,775,807");
    expect(formatCount("9007199254740993")).toBe("9,007,199,254,740,993");
  });

  it("groups small and negative numbers", () => {
    expect(formatCount(0)).toBe("0");
    expect(formatCount("-1234567")).toBe("-1,234,567");
  });

  it("adds without rounding", () => {
    expect(sumOf(["9007199254740993", "1"])).toBe(9007199254740994n);
  });

  it("says sizes in the unit a person would use", () => {
    expect(formatBytes("0")).toBe("0 B");
    expect(formatBytes("1023")).toBe("1,023 B");
    expect(formatBytes("1536")).toBe("1.5 KiB");
    expect(formatBytes("9223372036854775807")).toBe("7.9 EiB");
  });

  it("shortens counts", () => {
    expect(formatCompact("999")).toBe("999");
    expect(formatCompact("1250000")).toBe("1.2 M");
  });

  it("places a value between bounds", () => {
    expect(fractionBetween(5n, 0n, 10n)).toBe(0.5);
    expect(fractionBetween(20n, 0n, 10n)).toBe(1);
    expect(fractionBetween(0n, 0n, 0n)).toBe(1);
  });
});
