// Frames of `highwater.v1.json`, the protocol of /api/v1/ws, as far as the dashboard uses it.
import type { Int64Text } from "../int64";
import type { Group, GroupPage, LogRecord, PartitionRow } from "../types";

export interface Credit {
  records: number;
  bytes: number;
}

export type Start = "earliest" | "latest" | { tail: number } | { offsets: Record<string, Int64Text> };

export type WatchTarget = { topic: string } | { group: string } | { groups: true };

export type ClientFrame =
  | { type: "hello"; token: string; client: string }
  | { type: "subscribe"; id: string; topic: string; partitions?: number[]; start: Start; credit: Credit }
  | ({ type: "credit"; sub: string } & Credit)
  | { type: "unsubscribe"; sub: string }
  | ({ type: "watch"; id: string } & WatchTarget)
  | { type: "ping"; t: number };

export type ServerFrame =
  | { type: "welcome"; session: string; heartbeat_ms?: number }
  | { type: "subscribed"; id: string; sub: string; positions?: Record<string, Int64Text>; hw?: Offsets }
  | { type: "records"; sub: string; batch: LogRecord[]; hw?: Offsets; remaining_credit?: Partial<Credit> | number }
  | { type: "caught_up"; sub: string }
  | { type: "partitions"; sub: string; topic: string; data: PartitionRow[] }
  | { type: "group"; sub: string; group: string; data: GroupPage }
  | { type: "groups"; sub: string; data: Group[] }
  | { type: "unsubscribed"; sub: string }
  | { type: "pong"; t: number }
  | { type: "error"; code: string | number; message: string; retryable?: boolean; id?: string; sub?: string }
  | { type: "goodbye"; reason?: string };

export type Offsets = Record<string, Int64Text>;
