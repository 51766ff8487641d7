// A partition's row for tests: nothing committed, nobody there.
import type { GroupPartition } from "../../api/types";

export const partitionRow = (changes: Partial<GroupPartition>): GroupPartition => ({
  topic: "orders",
  partition: 0,
  status: "ok",
  words: "",
  owner: null,
  committed: null,
  commit_ms: null,
  metadata: null,
  commit_rate: null,
  position: null,
  position_doubt: null,
  repeat_count: null,
  log_start_offset: "0",
  high_watermark: "100",
  last_stable_offset: null,
  lag: null,
  lag_seconds: null,
  trend: "steady",
  eta_seconds: null,
  lag_points: [],
  ...changes,
});
