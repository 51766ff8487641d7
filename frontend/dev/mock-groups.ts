// Two groups over the mock cluster's first topic: one keeps up, one falls behind, so that the pages have something to draw.
import type { Group, GroupPage, GroupPartition, GroupStatus, RebalanceEvent } from "../src/api/types.ts";
import type { MockCluster } from "./mock-cluster.ts";
import type { Answer } from "./mock-routes.ts";

const STARTED_MS = Date.now();

export function groups(cluster: MockCluster, name: string | undefined): Answer {
  const pages = [page(cluster, "billing", "ok", 0.98), page(cluster, "warehouse", "warn", 0.4)];
  if (!name) return { status: 200, body: { data: pages satisfies Group[], next_page_token: null } };
  const found = pages.find((each) => each.name === name);
  return found ? { status: 200, body: found } : { status: 404, body: { detail: `There is no group '${name}'` } };
}

function page(cluster: MockCluster, name: string, status: GroupStatus, share: number): GroupPage {
  const [topic = "hello", made] = [...cluster.topics][0] ?? [];
  const count = made?.topic.partitions ?? 0;
  const member = { id: `${name}-1-5b2f`, client_id: `${name}-1`, host: "127.0.0.1", instance_id: null };
  const partitions = Array.from({ length: count }, (_, index) => partition(topic, index, member.id, status, share));
  const lag = partitions.reduce((sum, row) => sum + Number(row.lag), 0);
  const points = Array.from({ length: 60 }, (_, index) => Math.round(lag * (status === "ok" ? 1 : index / 60)));
  return {
    name,
    state: "Stable",
    protocol: "classic",
    status,
    words: status === "ok" ? "It keeps up." : `It reads, but falls behind: ${lag} records wait.`,
    worst: { topic, partition: 0 },
    member_count: 1,
    topics: [topic],
    partition_count: count,
    lag: String(lag),
    lag_seconds: status === "ok" ? 2 : 190,
    trend: status === "ok" ? "steady" : "growing",
    eta_seconds: null,
    last_commit_ms: Date.now() - 2_000,
    coordinator: 1,
    offsets_partition: 17,
    generation: 1,
    lag_points: points,
    protocol_type: "consumer",
    assignor: "range",
    leader: member.id,
    state_since_ms: STARTED_MS,
    members: [{ ...member, partitions: [{ topic, partitions: partitions.map((row) => row.partition) }] }],
    partitions,
    events: [
      event(-63_000, "joined", { member: member.id, client_id: member.client_id, generation: 0 }),
      event(-60_000, "rebalanced", { duration_ms: 3_000, moved_count: 0 }),
      event(-31_000, "rejoined", { member: member.id, client_id: member.client_id }),
      event(-31_000, "partitions_changed", { topics: [topic], partitions_before: 2, partitions_after: count }),
      event(-30_000, "rebalanced", { duration_ms: 1_000, moved_count: 1, generation: 2 }),
    ],
    lag_history: points.map((records, index) => ({ at_ms: Date.now() - (60 - index) * 5_000, records, seconds: null })),
  };
}

const event = (sinceMs: number, kind: string, changes: Partial<RebalanceEvent>): RebalanceEvent => ({
  at_ms: STARTED_MS + sinceMs,
  kind,
  member: null,
  client_id: null,
  generation: 1,
  duration_ms: null,
  moved_count: null,
  topics: [],
  dropped_topics: [],
  unnamed_count: 0,
  partitions_before: null,
  partitions_after: null,
  ...changes,
});

function partition(topic: string, index: number, owner: string, status: GroupStatus, share: number): GroupPartition {
  const end = 4_000 + 100 * index;
  const committed = Math.round(end * share);
  return {
    topic,
    partition: index,
    status,
    words: "",
    owner,
    committed: String(committed),
    commit_ms: Date.now() - 2_000,
    metadata: "",
    commit_rate: 0.5,
    position: String(Math.round((committed + end) / 2)),
    position_doubt: null,
    repeat_count: String(Math.round((end - committed) / 2)),
    log_start_offset: "0",
    high_watermark: String(end),
    last_stable_offset: String(status !== "ok" && index === 1 ? end - 600 : end),
    lag: String(end - committed),
    lag_seconds: status === "ok" ? 2 : 190,
    trend: "steady",
    eta_seconds: null,
    lag_points: [],
  };
}
