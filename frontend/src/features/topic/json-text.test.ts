import { describe, expect, it } from "vitest";
import { prettyTokens } from "./json-text";

const pretty = (text: string): string | undefined =>
  prettyTokens(text)
    ?.map((token) => token.text)
    .join("");

describe("JSON as text", () => {
  it("keeps int64 and long decimals to the last digit", () => {
    expect(pretty('{"id":9007199254740993,"rate":0.10000000000000000001}')).toBe(
      '{\n  "id": 9007199254740993,\n  "rate": 0.10000000000000000001\n}',
    );
  });

  it("indents nesting, leaves empty ones on their line, and ignores punctuation inside strings", () => {
    expect(pretty('{"a":[1,{"b":[]}],"c":"{,:}\\" x"}')).toBe(
      '{\n  "a": [\n    1,\n    {\n      "b": []\n    }\n  ],\n  "c": "{,:}\\" x"\n}',
    );
  });

  it("tells keys from strings", () => {
    const kinds = prettyTokens('{"a":"b"}')?.filter(({ kind }) => kind === "key" || kind === "string");
    expect(kinds).toEqual([
      { kind: "key", text: '"a"' },
      { kind: "string", text: '"b"' },
    ]);
  });

  it("says no to what is not JSON", () => {
    expect(prettyTokens("hello")).toBeNull();
  });
});
