import { describe, expect, it } from "vitest";
import type { BrokerRow, Cluster } from "../../api/types";
import { formatSeconds, ratesBetween, throttleBytes, totalsOf, verdictOf } from "./words";

const broker = (id: number, changes: Partial<BrokerRow> = {}): BrokerRow => ({
  id,
  status: "up",
  host: "h",
  rack: null,
  is_controller: false,
  is_voter: true,
  silent_for_s: 0,
  started_ms: 0,
  leader_count: 1,
  replica_count: 1,
  under_replicated_count: 0,
  under_min_isr_count: 0,
  offline_count: 0,
  damaged_count: 0,
  connection_count: 1,
  loop_lag_ms: 0,
  bytes_in: "9007199254740993",
  bytes_out: "0",
  size_bytes: "0",
  disk_free_bytes: "0",
  is_disk_low: false,
  is_degraded: false,
  ...changes,
});

const cluster = (changes: Partial<Cluster["partitions"]> = {}, brokers = [broker(1), broker(2)]): Cluster => ({
  quorum: { leader: 1, epoch: 1, metadata_offset: "1", voters: [1, 2, 3] },
  brokers,
  partitions: { all: 9, leaderless: 0, under_min_isr: 0, under_replicated: 0, moving: 0, ...changes },
  unclean_election_count: 0,
  troubled: [],
  moves: [],
});

describe("the verdict", () => {
  it("names the worst first", () => {
    expect(verdictOf(cluster()).text).toBe("All is well");
    expect(verdictOf(cluster({ moving: 2, under_replicated: 1 })).text).toBe("1 partition under-replicated");
    expect(verdictOf(cluster({ leaderless: 2, under_min_isr: 9 }))).toMatchObject({
      tone: "bad",
      text: "2 partitions without a leader",
    });
  });

  it("counts damaged logs, but not those of a broker that is gone", () => {
    const brokers = [broker(1, { damaged_count: 1 }), broker(2, { damaged_count: 2, status: "down" })];
    expect(verdictOf(cluster({ under_replicated: 4 }, brokers)).text).toBe("1 log damaged on disk");
  });

  it("says which brokers are away", () => {
    const away = [broker(1), broker(2, { status: "down" }), broker(3, { status: "fenced" })];
    expect(verdictOf(cluster({ under_replicated: 4 }, away)).text).toBe("Broker 2, 3 are away");
  });
});

describe("rates", () => {
  const at = (atMs: number, bytes: string) => totalsOf(broker(1, { bytes_in: bytes }), atMs);

  it("come from two looks, exact above 2^53", () => {
    const rates = ratesBetween(at(1_000, "9007199254740993") ?? undefined, at(3_000, "9007199254742993"));
    expect(rates?.in).toBe(1_000n);
  });

  it("are not known after one look, or after a restart", () => {
    expect(ratesBetween(undefined, at(1_000, "5"))).toBeNull();
    expect(ratesBetween(at(1_000, "500") ?? undefined, at(2_000, "5"))).toBeNull();
  });
});

describe("the throttle", () => {
  it("is in MiB, or none", () => {
    expect(throttleBytes("10")).toBe(10_485_760);
    expect(throttleBytes(" ")).toBeUndefined();
    expect(throttleBytes("fast")).toBeNull();
    expect(throttleBytes("0")).toBeNull();
  });
});

it("says how long a broker has been silent", () => {
  expect([5.4, 119, 200, 40_000].map(formatSeconds)).toEqual(["5 s", "119 s", "3 min", "11 h"]);
});
