// Topics and records in memory, with some made-up traffic.
import type {
  BrokerRow,
  Cluster,
  LogRecord,
  MovePlan,
  PartitionRow,
  Topic,
  TroubledPartition,
} from "../src/api/types.ts";

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
      trouble: name === "clickstream" ? "leaderless" : null,
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
      const isClicks = made.topic.name === "clickstream";
      const osr = isClicks && partition === 4 ? [1] : isClicks && partition === 7 ? [1, 3] : [];
      const isLost = isClicks && partition === 9;
      const leader = 1 + (partition % 3);
      const lagOf = (broker: number): number =>
        osr.includes(broker) ? Math.min(end, 120) : broker === 1 + ((partition + 1) % 3) ? trailing : 0;
      return {
        partition,
        leader: isLost ? null : leader,
        leader_epoch: 4 + (partition % 2),
        partition_epoch: 9,
        replicas: [1, 2, 3].map((broker) => ({
          broker,
          in_sync: !isLost && !osr.includes(broker),
          log_end_offset: isLost ? null : String(end - (broker === leader ? 0 : lagOf(broker))),
        })),
        isr: isLost ? [] : [1, 2, 3].filter((broker) => !osr.includes(broker)),
        osr: isLost ? [1, 2, 3] : osr,
        elr: isLost ? [leader] : [],
        adding: isClicks && partition === 4 ? [1] : [],
        removing: [],
        min_insync: 2,
        unclean_election_count: 0,
        log_start_offset: String(log.start),
        high_watermark: String(end - trailing),
        last_stable_offset: String(end - trailing),
        log_end_offset: String(end),
        size_bytes: String(log.bytes),
      };
    });
  }

  brokers(): Cluster {
    const all = [...this.topics.values()].flatMap((made) => this.rows(made).map((row) => ({ made, row })));
    const place = ({ made, row }: (typeof all)[0]) => ({
      tenant: "demo",
      topic: made.topic.name,
      partition: row.partition,
    });
    const seconds = Date.now() / 1_000;
    const broker = (id: number, changes: Partial<BrokerRow> = {}): BrokerRow => ({
      id,
      status: "up",
      host: `10.0.0.${10 + id}`,
      rack: `zone-${"abc"[id - 1] ?? "d"}`,
      is_controller: id === 2,
      is_voter: id < 4,
      silent_for_s: 0.4,
      started_ms: Date.now() - 9_000_000,
      leader_count: id === 4 ? 0 : 8,
      replica_count: id === 4 ? 1 : 24,
      under_replicated_count: id === 2 ? 1 : 0,
      under_min_isr_count: 0,
      offline_count: 0,
      damaged_count: 0,
      connection_count: 12 + id,
      loop_lag_ms: id,
      bytes_in: String(Math.round(seconds * 1_300_000 * id)),
      bytes_out: String(Math.round(seconds * 2_900_000 * id)),
      size_bytes: String(9_300_000_000 + id),
      disk_free_bytes: String(51_300_000_000),
      is_disk_low: false,
      is_degraded: false,
      ...changes,
    });
    const moving = all.filter(({ row }) => row.adding.length > 0);
    const troubleOf = (row: PartitionRow): TroubledPartition["trouble"] | null =>
      row.leader === null
        ? "leaderless"
        : row.isr.length < 2
          ? "under_min_isr"
          : row.osr.some((one) => !row.adding.includes(one))
            ? "under_replicated"
            : null;
    const troubled = all.flatMap((one) => {
      const trouble = troubleOf(one.row);
      if (!trouble) return [];
      const { leader, leader_epoch, isr, osr, elr } = one.row;
      return [{ ...place(one), trouble, leader, leader_epoch, replicas: [1, 2, 3], isr, osr, elr, min_insync: 2 }];
    });
    const count = (trouble: string): number => troubled.filter((one) => one.trouble === trouble).length;
    return {
      quorum: { leader: 2, epoch: 7, metadata_offset: "1482", voters: [1, 2, 3] },
      brokers: [broker(1), broker(2), broker(3, { status: "down", silent_for_s: 84 }), broker(4)],
      partitions: {
        all: all.length,
        leaderless: count("leaderless"),
        under_min_isr: count("under_min_isr"),
        under_replicated: count("under_replicated"),
        moving: moving.length,
      },
      unclean_election_count: 1,
      troubled,
      moves: moving.map((one) => ({
        ...place(one),
        replicas: [1, 2, 3],
        adding: [1],
        removing: [],
        progress: 0.62,
        bytes_left: "73400320",
      })),
    };
  }

  plan(leaving: number[]): MovePlan {
    const moves = [...this.topics.values()].flatMap((made) =>
      this.rows(made).map((row) => ({
        tenant: "demo",
        topic: made.topic.name,
        partition: row.partition,
        before: [1, 2, 3],
        after: leaving.length ? [1, 2, 3, 4].filter((one) => !leaving.includes(one)) : [4, 2, 3],
        size_bytes: "73400320",
      })),
    );
    const size = String(73_400_320 * moves.length);
    return { plan_id: "mock", is_begun: false, move_count: moves.length, size_bytes: size, moves };
  }
}

function ago(seconds: number): string {
  return new Date(Date.now() - seconds * 1_000).toISOString();
}
