// Topics and records in memory, with some made-up traffic.
import type { LogRecord, PartitionRow, Topic } from "../src/api/types.ts";

const KEPT_MAX = 2_000;

export interface MockPartition {
  start: number;
  records: LogRecord[];
  bytes: number;
}

export interface MockTopic {
  topic: Topic;
  partitions: MockPartition[];
  perTick: number;
}

export class MockCluster {
  readonly topics = new Map<string, MockTopic>();
  readonly keys = [
    {
      id: "hw-k3v9q2",
      name: "checkout service",
      created_at: ago(86_400 * 9),
      created_by: "demo@example.com",
      last_used_at: ago(14),
      status: "active",
    },
    {
      id: "hw-a81xp0",
      name: "spark usage job",
      created_at: ago(86_400 * 30),
      created_by: "demo@example.com",
      last_used_at: null,
      status: "active",
    },
    {
      id: "hw-77zzt4",
      name: "old laptop",
      created_at: ago(86_400 * 90),
      created_by: "demo@example.com",
      last_used_at: ago(86_400 * 41),
      status: "revoked",
    },
  ];
  isSignedIn = false;

  constructor() {
    this.create("orders", 3, {}, 7);
    this.create("payments.settled", 6, { "retention.ms": "2592000000" }, 2);
    this.create("clickstream", 12, { "retention.ms": "86400000", "ack.durability": "page-cache" }, 40);
    this.create("inventory-snapshots", 1, { "cleanup.policy": "compact" }, 0);
    for (let round = 0; round < 30; round += 1) this.makeTraffic();
    const snapshots = this.create("iot.telemetry.berlin-brandenburg.north.sensor-readings-raw", 2, {}, 0);
    snapshots.topic.status = "creating";
  }

  create(name: string, partitions: number, configs: Record<string, string>, perTick = 0): MockTopic {
    const topic: Topic = {
      name,
      project: null,
      partitions,
      replication_factor: 3,
      configs,
      status: "ready",
      status_detail: null,
      topic_id: "x",
      created_at: ago(3600),
      created_by: "demo@example.com",
      record_count: "0",
      size_bytes: "0",
      last_write_ms: null,
    };
    const made = {
      topic,
      perTick,
      partitions: Array.from({ length: partitions }, () => ({ start: 0, records: [], bytes: 0 })),
    };
    this.topics.set(name, made);
    return made;
  }

  append(
    made: MockTopic,
    partition: number,
    key: string | null,
    value: LogRecord["value"],
    headers: LogRecord["headers"] = [],
  ): LogRecord {
    const log = made.partitions[partition] as MockPartition;
    const offset = log.start + log.records.length;
    const record: LogRecord = {
      partition,
      offset: String(offset),
      timestamp: Date.now(),
      key: key === null ? null : { type: "string", data: key },
      value,
      headers,
    };
    log.records.push(record);
    log.bytes += 180;
    if (log.records.length > KEPT_MAX) log.start += log.records.splice(0, 200).length;
    made.topic.last_write_ms = record.timestamp;
    made.topic.record_count = String(BigInt(made.topic.record_count ?? 0) + 1n);
    made.topic.size_bytes = String(BigInt(made.topic.size_bytes ?? 0) + 180n);
    return record;
  }

  makeTraffic(): void {
    for (const made of this.topics.values()) {
      const count = Math.round(made.perTick * (0.4 + Math.random() * 1.2));
      for (let n = 0; n < count; n += 1) {
        const id = Math.floor(Math.random() * 90_000) + 10_000;
        const text = `{"order_id":9007199254740993${id % 10},"customer":"c-${id}","total":${(id / 137).toFixed(2)},"items":[{"sku":"A-${id % 97}","count":${1 + (id % 4)}}],"paid":${id % 3 !== 0}}`;
        const value: LogRecord["value"] =
          id % 23 === 0
            ? null
            : id % 17 === 0
              ? { type: "base64", data: Buffer.from(`bin-${id}-\x00\x01\xff`, "latin1").toString("base64") }
              : { type: "json", text };
        this.append(made, id % made.partitions.length, id % 5 ? `c-${id}` : null, value, [
          { name: "source", value: Buffer.from("checkout").toString("base64") },
          { name: "trace-id", value: Buffer.from(`00-${id}-01`).toString("base64") },
        ]);
      }
    }
  }

  rows(made: MockTopic): PartitionRow[] {
    return made.partitions.map((log, partition) => {
      const end = log.start + log.records.length;
      const trailing = partition % 5 === 1 ? Math.min(end, 3 + Math.floor(Math.random() * 5)) : 0;
      const outOfSync = made.topic.name === "clickstream" && partition === 4;
      const leader = 1 + (partition % 3);
      return {
        partition,
        leader,
        leader_epoch: 4 + (partition % 2),
        replicas: [1, 2, 3].map((broker) => {
          const lag =
            broker === leader
              ? 0
              : broker === 1 + ((partition + 1) % 3)
                ? trailing
                : outOfSync
                  ? Math.min(end, 120)
                  : 0;
          return { broker, in_sync: !(outOfSync && lag > 100), log_end_offset: String(end - lag) };
        }),
        isr: outOfSync ? [leader] : [1, 2, 3],
        log_start_offset: String(log.start),
        high_watermark: String(end - trailing),
        last_stable_offset: String(end - trailing),
        log_end_offset: String(end),
        size_bytes: String(log.bytes),
      };
    });
  }
}

function ago(seconds: number): string {
  return new Date(Date.now() - seconds * 1_000).toISOString();
}
