import { expect, it } from "vitest";
import { configRows, meaningOf } from "./config-rows";

it("shows what was set and the common defaults, each once", () => {
  const rows = configRows({ "retention.ms": "3600000", "flush.ms": "10" }, ["retention.ms"]);
  expect(rows.find((row) => row.name === "retention.ms")).toMatchObject({
    isSet: true,
    meaning: "1 hour",
    isEditable: true,
  });
  expect(rows.find((row) => row.name === "cleanup.policy")).toMatchObject({
    isSet: false,
    value: "delete",
    isEditable: false,
  });
  expect(new Set(rows.map((row) => row.name)).size).toBe(rows.length);
});

it("says in words what a number means", () => {
  expect(meaningOf("retention.ms", "-1")).toBe("for ever");
  expect(meaningOf("max.message.bytes", "1048588")).toBe("1.0 MiB");
  expect(meaningOf("cleanup.policy", "compact")).toBe("");
});
