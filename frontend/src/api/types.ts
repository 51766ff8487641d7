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
  leader: number;
  leader_epoch: number;
  replicas: Replica[];
  isr: number[];
  log_start_offset: Int64Text;
  high_watermark: Int64Text;
  /** null = only the broker knows, and its telemetry has not told yet. */
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
