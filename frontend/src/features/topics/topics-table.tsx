import { useEffect, useMemo, useState } from "react";
import { formatBytes, formatCount } from "../../api/int64";
import type { Topic } from "../../api/types";
import { Link, navigate } from "../../components/router";
import { Sparkline } from "../../components/sparkline";
import { Ago } from "../../components/time";
import { TopicStatusChip, TroubleChip } from "../../components/topic-status";
import { addSamples, type RateHistory, ratePerSecond, type Sample, sparkline } from "./rates";

type SortKey = "name" | "partitions" | "records" | "size" | "write";
interface Sort {
  key: SortKey;
  isDescending: boolean;
}

const COLUMNS: { key: SortKey | null; label: string; isNumber?: boolean }[] = [
  { key: "name", label: "Name" },
  { key: "partitions", label: "Partitions", isNumber: true },
  { key: "records", label: "Records", isNumber: true },
  { key: null, label: "Writes" },
  { key: "size", label: "Size", isNumber: true },
  { key: "write", label: "Last write" },
  { key: null, label: "Status" },
];

const ROWS_MAX = 500;

export function TopicsTable({ topics, atMs }: { topics: Topic[]; atMs: number }) {
  const [sort, setSort] = useState<Sort>({ key: "name", isDescending: false });
  const history = useRateHistory(topics, atMs);
  const sorted = useMemo(() => sortTopics(topics, sort), [topics, sort]);
  if (topics.length === 0) return <p className="table-empty muted">No topic has this in its name.</p>;
  return (
    <>
      <table className="table topics-table">
        <thead>
          <tr>
            {COLUMNS.map(({ key, label, isNumber }) => (
              <th key={label} className={isNumber ? "num" : ""} aria-sort={ariaSort(sort, key)}>
                {key ? <SortButton label={label} sortKey={key} sort={sort} onSort={setSort} /> : label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted.slice(0, ROWS_MAX).map((topic) => (
            <TopicRow key={topic.name} topic={topic} samples={history.get(topic.name) ?? []} />
          ))}
        </tbody>
      </table>
      {sorted.length > ROWS_MAX && (
        <p className="table-empty muted">The first {ROWS_MAX} are shown: search to narrow the list.</p>
      )}
    </>
  );
}

function SortButton(props: { label: string; sortKey: SortKey; sort: Sort; onSort: (sort: Sort) => void }) {
  const isActive = props.sort.key === props.sortKey;
  const next = { key: props.sortKey, isDescending: isActive ? !props.sort.isDescending : props.sortKey !== "name" };
  return (
    <button type="button" className="sort-button" onClick={() => props.onSort(next)}>
      {props.label}
      <span aria-hidden="true">{isActive ? (props.sort.isDescending ? "↓" : "↑") : ""}</span>
    </button>
  );
}

function TopicRow({ topic, samples }: { topic: Topic; samples: readonly Sample[] }) {
  const href = `/topics/${encodeURIComponent(topic.name)}`;
  const rate = ratePerSecond(samples);
  return (
    <tr onClick={(event) => event.target instanceof HTMLTableCellElement && navigate(href)}>
      <td className="topic-name">
        <Link href={href}>{topic.name}</Link>
        {topic.project && <span className="muted">{topic.project}</span>}
      </td>
      <td className="num" data-label="Partitions">
        {topic.partitions}
      </td>
      <td className="num" data-label="Records">
        {topic.record_count === null ? "–" : formatCount(topic.record_count)}
      </td>
      <td data-label="Writes">
        <span className="rate">
          <Sparkline values={sparkline(samples)} label="Writes over the last minutes" />
          <span className="rate-number">{rateText(rate)}</span>
        </span>
      </td>
      <td className="num" data-label="Size">
        {topic.size_bytes === null ? "–" : formatBytes(topic.size_bytes)}
      </td>
      <td data-label="Last write">
        {topic.last_write_ms === null ? (
          <span className="muted">{topic.record_count === null ? "–" : "never"}</span>
        ) : (
          <Ago at={topic.last_write_ms} />
        )}
      </td>
      <td data-label="Status">
        {/* A topic that has a partition without a leader is not ready for anybody. */}
        {topic.trouble && topic.status === "ready" ? (
          <TroubleChip trouble={topic.trouble} />
        ) : (
          <TopicStatusChip topic={topic} />
        )}
      </td>
    </tr>
  );
}

function rateText(rate: number | null): string {
  if (rate === null) return "";
  return rate === 0 ? "quiet" : `${rate < 10 ? rate.toFixed(1) : Math.round(rate).toLocaleString("en")}/s`;
}

function ariaSort(sort: Sort, key: SortKey | null): "ascending" | "descending" | undefined {
  if (sort.key !== key) return undefined;
  return sort.isDescending ? "descending" : "ascending";
}

function useRateHistory(topics: Topic[], atMs: number): RateHistory {
  const [history, setHistory] = useState<RateHistory>(new Map());
  useEffect(() => setHistory((before) => addSamples(before, topics, atMs)), [topics, atMs]);
  return history;
}

function sortTopics(topics: Topic[], { key, isDescending }: Sort): Topic[] {
  const sign = isDescending ? -1 : 1;
  return [...topics].sort((a, b) => sign * compareBy(key, a, b) || a.name.localeCompare(b.name));
}

function compareBy(key: SortKey, a: Topic, b: Topic): number {
  switch (key) {
    case "name":
      return a.name.localeCompare(b.name);
    case "partitions":
      return a.partitions - b.partitions;
    case "records":
      return compareBig(a.record_count, b.record_count);
    case "size":
      return compareBig(a.size_bytes, b.size_bytes);
    case "write":
      return Number(a.last_write_ms ?? 0) - Number(b.last_write_ms ?? 0);
  }
}

function compareBig(a: string | null, b: string | null): number {
  const difference = BigInt(a ?? -1) - BigInt(b ?? -1);
  return difference === 0n ? 0 : difference > 0n ? 1 : -1;
}
