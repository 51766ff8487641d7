import { describe, expect, it } from "vitest";
import { formatDuration, relativeTime } from "./time";

describe("relativeTime", () => {
  it("grows coarser with age", () => {
    const now = Date.UTC(2026, 0, 31);
    expect(relativeTime(now + 500, now)).toBe("just now");
    expect(relativeTime(now - 5_000, now)).toBe("5 s ago");
    expect(relativeTime(now - 3 * 60_000, now)).toBe("3 min ago");
    expect(relativeTime(now - 26 * 3_600_000, now)).toBe("1 d ago");
    expect(relativeTime(Date.UTC(2025, 0, 2), now)).toBe("2025-01-02");
  });
});

describe("formatDuration", () => {
  it("uses the largest unit that comes out even", () => {
    expect(formatDuration(604_800_000)).toBe("7 days");
    expect(formatDuration(3_600_000)).toBe("1 hour");
    expect(formatDuration(1_234)).toBe("1234 ms");
  });
});
