import { expect, it } from "vitest";
import { choiceQuery, parseChoice, startOf } from "./tail-choice";

it("every choice survives the way through the address", () => {
  for (const choice of [
    { from: "recent", partition: null, offset: "" },
    { from: "earliest", partition: 3, offset: "" },
    { from: "offset", partition: 0, offset: "9007199254740993" },
  ] as const) {
    expect(parseChoice(choiceQuery(choice))).toEqual(choice);
  }
});

it("an offset stays text on its way to the server", () => {
  expect(startOf(parseChoice("?partition=2&offset=9007199254740993"))).toEqual({
    offsets: { "2": "9007199254740993" },
  });
});

it("a broken address falls back to the recent records", () => {
  expect(parseChoice("?from=sideways&partition=x&offset=-1")).toEqual({ from: "recent", partition: null, offset: "" });
});
