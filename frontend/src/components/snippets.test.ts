import { describe, expect, it } from "vitest";
import { clientSnippets, securityProtocol } from "./snippets";

describe("client snippets", () => {
  const target = { bootstrap: "127.0.0.1:9093", origin: "http://localhost:8000", topic: "orders" };

  it("carry the key everywhere once it is known, and placeholders before", () => {
    for (const { code } of clientSnippets(target)) expect(code).toMatch(/KEY_ID[\s\S]*SECRET/);
    for (const { code } of clientSnippets({ ...target, keyId: "hw-1", secret: "s3" })) {
      expect(code).toMatch(/hw-1[\s\S]*s3/);
      expect(code).not.toMatch(/KEY_ID|SECRET\b/);
    }
  });

  it("ask for TLS everywhere but on this machine", () => {
    expect(securityProtocol("localhost:9093")).toBe("SASL_PLAINTEXT");
    expect(securityProtocol("kafka.example.com:443")).toBe("SASL_SSL");
  });
});
