import { describe, expect, it } from "vitest";
import { partitionsLeft, type VerdictInput, verdictView } from "./verdict";

const typed = (input: Partial<VerdictInput>): VerdictInput => ({
  name: "orders",
  answer: undefined,
  isAnswerCurrent: true,
  error: null,
  policy: { name_pattern: "^[a-z.-]+$", max_partitions_per_topic: 24, retention_ms_max: "604800000" },
  ...input,
});

const failed = { rule: "name", ok: false, message: "Use lower case." };
const passed = { rule: "partition_quota", ok: true, message: "Fits the quota", quota_left: 18 };

describe("the verdict while typing", () => {
  it("shows the policy before anything is typed, and does not let an empty name through", () => {
    const view = verdictView(typed({ name: "" }));
    expect(view.canSubmit).toBe(false);
    expect(view.rows.map((row) => row.message)).toEqual([
      "Matches ^[a-z.-]+$",
      "At most 24 per topic",
      "At most 7 days",
    ]);
  });

  it("turns red with the failed rule first and blocks the button", () => {
    const view = verdictView(typed({ answer: { ok: false, verdicts: [passed, failed] } }));
    expect(view).toMatchObject({ tone: "bad", headline: "1 rule is not met", canSubmit: false });
    expect(view.rows.map((row) => row.state)).toEqual(["fail", "ok"]);
  });

  it("turns green and says what is left of the quota", () => {
    const view = verdictView(typed({ answer: { ok: true, verdicts: [passed] } }));
    expect(view).toMatchObject({ tone: "ok", canSubmit: true });
    expect(view.rows[0]?.message).toBe("Fits the quota · 18 left");
  });

  it("does not hold a fast typist to an answer about an older name", () => {
    const view = verdictView(typed({ answer: { ok: false, verdicts: [failed] }, isAnswerCurrent: false }));
    expect(view).toMatchObject({ tone: "checking", canSubmit: true });
  });

  it("leaves the form usable when the check itself fails", () => {
    expect(verdictView(typed({ error: new Error("away") })).canSubmit).toBe(true);
  });
});

describe("partitionsLeft", () => {
  it("counts the new topic in", () => {
    expect(partitionsLeft({ limit: 60, used: 40 }, 6)).toBe(14);
    expect(partitionsLeft({ limit: null, used: 40 }, 6)).toBeNull();
  });
});
