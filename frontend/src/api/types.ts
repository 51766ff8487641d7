// The REST contract as the dashboard uses it, kept by hand beside /api/v1/schema. Int64 values are decimal text.
import type { Int64Text } from "./int64";

export interface TenantRef {
  id: string;
  name: string;
  role: string;
}

export interface Session {
  user: { email: string; name: string; is_operator: boolean };
  tenants: TenantRef[];
  csrf_token: string;
  engine: { kind: string };
  kafka_bootstrap: string;
}

export interface QuotaUse {
  limit: number | null;
  used: number;
}

export interface Policy {
  name_pattern?: string | null;
  max_partitions_per_topic?: number | null;
  retention_ms_max?: Int64Text | null;
  allowed_configs?: string[];
  default_partitions?: number;
}

export interface Tenant {
  id: string;
  name: string;
  cluster_id: string;
  role: string;
  kafka_bootstrap: string;
  quota: { partitions: QuotaUse; topics: QuotaUse };
  policy: Policy;
}

export type TopicStatus = "ready" | "creating" | "updating" | "deleting" | "failed";

export interface Topic {
  name: string;
  project: string | null;
  partitions: number;
  replication_factor: number | null;
  configs: Record<string, string>;
  status: TopicStatus;
  status_detail: string | null;
  topic_id: string | null;
  created_at: string;
  created_by: string | null;
  record_count: Int64Text | null;
  size_bytes: Int64Text | null;
  last_write_ms: number | string | null;
  /** The worst that any of its partitions is in. */
  trouble: Trouble | null;
}

export interface NewTopic {
  name: string;
  partitions?: number;
  replication_factor?: number;
  configs?: Record<string, string>;
}

export interface Verdict {
  rule: string;
  ok: boolean;
  message: string;
  want?: unknown;
  got?: unknown;
  quota_left?: number | null;
}

export interface DryRun {
  ok: boolean;
  verdicts: Verdict[];
}

export interface Replica {
  broker: number;
  in_sync: boolean;
  log_end_offset: Int64Text | null;
}

export interface PartitionRow {
  partition: number;
  /** null = nobody leads it: it can be neither written nor read. */
  leader: number | null;
  leader_epoch: number;
  partition_epoch: number | null;
  replicas: Replica[];
  isr: number[];
  osr: number[];
  elr: number[];
  adding: number[];
  removing: number[];
  /** With fewer in sync, acks=all is refused. null, here and below = only telemetry knows, and has not told yet. */
  min_insync: number | null;
  unclean_election_count: number | null;
  log_start_offset: Int64Text | null;
  high_watermark: Int64Text | null;
  last_stable_offset: Int64Text | null;
  log_end_offset: Int64Text | null;
  size_bytes: Int64Text | null;
}

export interface PartitionList {
  data: PartitionRow[];
  source: "telemetry" | "engine";
}

export type Payload =
  { type: "string"; data: string } | { type: "json"; text: string } | { type: "base64"; data: string } | null;

export interface LogRecord {
  partition: number;
  offset: Int64Text;
  timestamp: number;
  key: Payload;
  value: Payload;
  headers: { name: string; value: string | null }[];
}

export interface NewRecord {
  key?: { type: "STRING"; data: string };
  value?: { type: "STRING"; data: string } | null;
  headers?: { name: string; value: string }[];
  partition?: number;
}

export type ProduceResult =
  { partition: number; offset: Int64Text; timestamp?: number } | { error_code: number | string; message: string };

export interface ApiKey {
  id: string;
  name: string;
  created_at: string;
  created_by: string | null;
  last_used_at: string | null;
  status: string;
}

export interface NewApiKey extends ApiKey {
  secret: string;
}

export interface Page<T> {
  data: T[];
  next_page_token: string | null;
}

export type BrokerStatus = "up" | "draining" | "fenced" | "down";

export interface BrokerRow {
  id: number;
  status: BrokerStatus;
  host: string;
  rack: string | null;
  is_controller: boolean;
  is_voter: boolean;
  silent_for_s: number | null;
  started_ms: number | null;
  leader_count: number | null;
  replica_count: number | null;
  under_replicated_count: number | null;
  under_min_isr_count: number | null;
  offline_count: number | null;
  damaged_count: number | null;
  connection_count: number | null;
  loop_lag_ms: number | null;
  bytes_in: Int64Text | null;
  bytes_out: Int64Text | null;
  size_bytes: Int64Text | null;
  disk_free_bytes: Int64Text | null;
  is_disk_low: boolean | null;
  is_degraded: boolean | null;
}

export type Trouble = "leaderless" | "under_min_isr" | "under_replicated";

interface PartitionPlace {
  tenant: string;
  topic: string;
  partition: number;
}

export interface TroubledPartition extends PartitionPlace {
  trouble: Trouble;
  leader: number | null;
  leader_epoch: number;
  replicas: number[];
  isr: number[];
  osr: number[];
  elr: number[];
  min_insync: number;
}

export interface MovingPartition extends PartitionPlace {
  replicas: number[];
  adding: number[];
  removing: number[];
  /** 0 to 1. */
  progress: number;
  bytes_left: Int64Text | null;
}

export interface Cluster {
  quorum: { leader: number | null; epoch: number; metadata_offset: Int64Text; voters: number[] };
  brokers: BrokerRow[];
  partitions: { all: number; leaderless: number; under_min_isr: number; under_replicated: number; moving: number };
  unclean_election_count: number;
  troubled: TroubledPartition[];
  moves: MovingPartition[];
}

export interface MoveWish {
  replication_factor?: number;
  leaving?: number[];
}

export interface PlannedMove extends PartitionPlace {
  before: number[];
  after: number[];
  size_bytes: Int64Text;
}

export interface MovePlan {
  plan_id: string;
  is_begun: boolean;
  move_count: number;
  size_bytes: Int64Text;
  moves: PlannedMove[];
}

export type GroupStatus = "ok" | "unknown" | "warn" | "stall" | "rewind" | "stop";
export type Trend = "steady" | "growing" | "shrinking";

export interface Group {
  name: string;
  state: string;
  protocol: string;
  status: GroupStatus;
  /** The status of its worst partition, in words. */
  words: string;
  worst: { topic: string; partition: number } | null;
  member_count: number | null;
  topics: string[];
  partition_count: number;
  lag: Int64Text | null;
  lag_seconds: number | null;
  trend: Trend;
  eta_seconds: number | null;
  last_commit_ms: number | null;
  coordinator: number;
  offsets_partition: number | null;
  generation: number | null;
  lag_points: number[];
}

export interface GroupMember {
  id: string;
  client_id: string;
  host: string;
  instance_id: string | null;
  partitions: { topic: string; partitions: number[] }[];
}

export type PositionDoubt = "no_owner" | "not_seen" | "ambiguous";

export interface GroupPartition {
  topic: string;
  partition: number;
  status: GroupStatus;
  words: string;
  owner: string | null;
  committed: Int64Text | null;
  commit_ms: number | null;
  metadata: string | null;
  /** Per second, over the last minutes. */
  commit_rate: number | null;
  position: Int64Text | null;
  position_doubt: PositionDoubt | null;
  repeat_count: Int64Text | null;
  log_start_offset: Int64Text | null;
  high_watermark: Int64Text | null;
  last_stable_offset: Int64Text | null;
  lag: Int64Text | null;
  lag_seconds: number | null;
  trend: Trend;
  eta_seconds: number | null;
  lag_points: number[];
}

export interface RebalanceEvent {
  at_ms: number;
  kind: string;
  member: string | null;
  client_id: string | null;
  generation: number;
  duration_ms: number | null;
  moved_count: number | null;
  /** The one whose partitions changed, or those that a member subscribes to from now on; a few. */
  topics: string[];
  dropped_topics: string[];
  unnamed_count: number;
  partitions_before: number | null;
  partitions_after: number | null;
}

export interface LagPoint {
  at_ms: number;
  records: number;
  seconds: number | null;
}

export interface GroupPage extends Group {
  protocol_type: string;
  assignor: string | null;
  leader: string | null;
  state_since_ms: number | null;
  members: GroupMember[];
  partitions: GroupPartition[];
  events: RebalanceEvent[];
  lag_history: LagPoint[];
}

export type ResetTo = "earliest" | "latest" | "current" | "timestamp" | "duration" | "offset" | "shift" | "file";

export interface ResetWish {
  to: ResetTo;
  topics?: { topic: string; partitions?: number[] }[];
  timestamp_ms?: number;
  duration_ms?: number;
  offset?: Int64Text;
  shift?: number;
  csv?: string;
}

export interface ResetStep {
  topic: string;
  partition: number;
  before: Int64Text | null;
  after: Int64Text;
  log_start_offset: Int64Text;
  high_watermark: Int64Text;
  skipped_count: Int64Text;
  replayed_count: Int64Text;
  preview: string | null;
}

export interface ResetPlan {
  is_done: boolean;
  member_count: number;
  skipped_count: Int64Text;
  replayed_count: Int64Text;
  cli: string;
  steps: ResetStep[];
}
