import { useEffect, useState } from "react";
import { formatBytes, formatCount, sumOf } from "../../api/int64";
import { useWriteAccess } from "../../api/session";
import type { PartitionRow, Topic } from "../../api/types";
import { Button, Chip } from "../../components/controls";
import { TrashIcon } from "../../components/icons";
import { Link } from "../../components/router";
import { Ago, formatDuration } from "../../components/time";
import { TopicStatusChip } from "../../components/topic-status";
import { worstOf } from "./partition-state";
import { logEnd, recordsIn } from "./rail";

const DEFAULT_RETENTION_MS = "604800000";

interface HeaderProps {
  topic: Topic;
  rows: PartitionRow[] | undefined;
  onDelete: () => void;
}

export function TopicHeader({ topic, rows, onDelete }: HeaderProps) {
  const lastWriteMs = useLastWrite(topic, rows);
  const writeAccess = useWriteAccess();
  return (
    <header className="topic-head">
      <nav className="crumbs" aria-label="Where you are">
        <Link href="/topics">Topics</Link> <span aria-hidden="true">/</span>
      </nav>
      <div className="page-head">
        <h1>{topic.name}</h1>
        <TopicStatusChip topic={topic} />
        {rows && <Health rows={rows} />}
        <span className="topic-head-space" />
        <Button tone="danger" onClick={onDelete} disabled={topic.status === "deleting"} {...writeAccess}>
          <TrashIcon />
          Delete
        </Button>
      </div>
      {topic.status === "failed" && topic.status_detail && (
        <div className="notice notice-bad" role="alert">
          <div>
            <strong>The engine could not carry this out.</strong>
            <p>{topic.status_detail}</p>
          </div>
        </div>
      )}
      <dl className="facts">
        <Fact label="Records" value={recordCount(topic, rows)} />
        <Fact label="Size" value={sizeText(topic, rows)} />
        <Fact label="Partitions" value={String(topic.partitions)} isMinor />
        <Fact label="Copies" value={copiesText(topic, rows)} isMinor />
        <Fact label="Kept for" value={retentionText(topic)} />
        <div>
          <dt>Last write</dt>
          <dd>{lastWriteMs === null ? topic.record_count === null ? "–" : "never" : <Ago at={lastWriteMs} />}</dd>
        </div>
      </dl>
    </header>
  );
}

function Fact({ label, value, isMinor }: { label: string; value: string; isMinor?: boolean }) {
  return (
    <div className={isMinor ? "fact-minor" : ""}>
      <dt>{label}</dt>
      <dd data-testid={`fact-${label.toLowerCase()}`}>{value}</dd>
    </div>
  );
}

/** The topic is read now and then, its offsets every second: where they grow, somebody has just written. */
function useLastWrite(topic: Topic, rows: PartitionRow[] | undefined): number | null {
  const [seen, setSeen] = useState<{ end: bigint | null; atMs: number | null }>({ end: null, atMs: null });
  const end = rows?.length ? rows.reduce((sum, row) => sum + logEnd(row), 0n) : null;
  useEffect(() => {
    if (end === null) return;
    setSeen((before) => ({ end, atMs: before.end !== null && end > before.end ? Date.now() : before.atMs }));
  }, [end]);
  const told = topic.last_write_ms === null ? null : Number(topic.last_write_ms);
  return seen.atMs === null ? told : Math.max(seen.atMs, told ?? 0);
}

function recordCount(topic: Topic, rows: PartitionRow[] | undefined): string {
  if (rows?.length) return formatCount(rows.reduce((sum, row) => sum + recordsIn(row), 0n));
  return topic.record_count === null ? "–" : formatCount(topic.record_count);
}

function sizeText(topic: Topic, rows: PartitionRow[] | undefined): string {
  const sizes = rows?.map((row) => row.size_bytes) ?? [];
  if (sizes.length && !sizes.includes(null)) return formatBytes(sumOf(sizes.map((size) => size ?? "0")));
  return topic.size_bytes === null ? "–" : formatBytes(topic.size_bytes);
}

/** null = the engine's default: then the partitions know. */
const copiesText = (topic: Topic, rows: PartitionRow[] | undefined): string =>
  String(topic.replication_factor ?? rows?.[0]?.replicas.length ?? "–");

function retentionText(topic: Topic): string {
  if (topic.configs["cleanup.policy"] === "compact") return "compacted";
  const retentionMs = Number(topic.configs["retention.ms"] ?? DEFAULT_RETENTION_MS);
  return retentionMs < 0 ? "ever" : formatDuration(retentionMs);
}

/** A verdict in words, from what the brokers say of themselves. */
function Health({ rows }: { rows: PartitionRow[] }) {
  const found = worstOf(rows);
  if (!found) return null;
  return (
    <Chip tone={found.state.tone} title={found.state.title}>
      {found.count} {found.count === 1 ? "partition" : "partitions"} {found.state.label}
    </Chip>
  );
}
