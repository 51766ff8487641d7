import { describe, expect, it } from "vitest";
import type { LogRecord } from "../../api/types";
import { base64Of, headerText, hexDump, payloadPreview, recordMatches } from "./payload";

const record: LogRecord = {
  partition: 0,
  offset: "41",
  timestamp: 0,
  key: { type: "string", data: "o-17" },
  value: { type: "json", text: '{"total":9007199254740993}' },
  headers: [{ name: "source", value: base64Of("wëb") }],
};

describe("payloads", () => {
  it("are one line in a row", () => {
    expect(payloadPreview({ type: "string", data: "a\n  b" })).toBe("a b");
    expect(payloadPreview(null)).toBe("null");
    expect(payloadPreview({ type: "base64", data: "3q2+7w==" })).toBe("4 bytes: de ad be ef");
  });

  it("headers are text where they can be, hex where not", () => {
    expect(headerText(base64Of("wëb"))).toBe("wëb");
    expect(headerText("/w==")).toBe("ff");
    expect(headerText(null)).toBe("null");
  });

  it("are dumped as hex and characters", () => {
    expect(hexDump(new Uint8Array([72, 105, 0]))).toBe(`000000  ${"48 69 00".padEnd(48)} Hi.`);
  });
});

describe("search in what is shown", () => {
  it("looks in key, value, headers and offset", () => {
    for (const needle of ["", "o-17", "40993", "wëb", "source", "41"]) expect(recordMatches(record, needle)).toBe(true);
    expect(recordMatches(record, "nothing")).toBe(false);
  });
});
