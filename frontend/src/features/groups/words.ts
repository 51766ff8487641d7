// What the pages of groups say in words. Pure.
import { formatCount } from "../../api/int64";
import type { GroupMember, GroupPartition, PositionDoubt, RebalanceEvent, Trend } from "../../api/types";
import { recordsText, secondsText } from "../../components/lag";

export const DOUBTS: Record<PositionDoubt, string> = {
  no_owner: "no member owns it",
  not_seen: "its owner has not fetched lately",
  ambiguous: "two readers have its owner's client id and host",
};

const EVENT_VERBS: Record<string, string> = {
  joined: "joined",
  returned: "came back under its name",
  left: "left",
  timed_out: "was silent for too long",
  rejoined: "asked for a new assignment",
};

export type EventTone = "in" | "out" | "bad" | "done" | "note";

export function toneOfEvent(kind: string): EventTone {
  switch (kind) {
    case "joined":
    case "returned":
      return "in";
    case "left":
      return "out";
    case "timed_out":
      return "bad";
    case "rebalanced":
      return "done";
    default:
      return "note";
  }
}

export function eventText(event: RebalanceEvent): string {
  const who = event.client_id ?? event.member ?? "somebody";
  const verb = EVENT_VERBS[event.kind];
  if (verb) return `${who} ${verb}`;
  switch (event.kind) {
    case "rebalanced":
      return rebalanceText(event);
    case "subscription_changed":
      return `${who} ${subscriptionText(event)}`;
    case "partitions_changed":
      return partitionsText(event);
    case "coordinator_moved":
      return "another broker coordinates it now";
    case "converted":
      return "the group changed its protocol";
    default:
      return event.kind.replaceAll("_", " ");
  }
}

function subscriptionText({ topics, dropped_topics, unnamed_count }: RebalanceEvent): string {
  const more = unnamed_count === 0 ? "" : ` (${topicCount(unnamed_count)} more)`;
  const added = topics.length === 0 ? "" : ` to ${topics.join(", ")}`;
  const dropped = dropped_topics.length === 0 ? "" : ` no longer to ${dropped_topics.join(", ")}`;
  if (!added && !dropped) return `changed what it subscribes to${more}`;
  return `subscribes${[added, dropped].filter(Boolean).join(", and")}${more}`;
}

function partitionsText(event: RebalanceEvent): string {
  const topic = event.topics[0];
  if (topic === undefined) {
    return event.unnamed_count === 0
      ? "a topic that it reads was made, deleted or grew"
      : `${topicCount(event.unnamed_count)} more that it reads changed`;
  }
  const before = event.partitions_before ?? 0;
  const after = event.partitions_after ?? 0;
  if (after === 0) return `${topic} was deleted`;
  if (before === 0) return `${topic} was made, with ${partitionCount(after)}`;
  if (before === after) return `${topic} was deleted and made again`;
  return `${topic} ${after > before ? "grew" : "went"} from ${before} to ${partitionCount(after)}`;
}

const topicCount = (count: number): string => `${count} ${count === 1 ? "topic" : "topics"}`;

const partitionCount = (count: number): string => `${count} ${count === 1 ? "partition" : "partitions"}`;

function rebalanceText(event: RebalanceEvent): string {
  const took =
    event.duration_ms === null ? "" : event.duration_ms === 0 ? " at once" : ` in ${millisText(event.duration_ms)}`;
  if (event.moved_count === null) return `settled${took}`;
  const moved = event.moved_count === 1 ? "1 partition" : `${event.moved_count || "no"} partitions`;
  return `settled${took}, ${moved} changed hands`;
}

export const millisText = (durationMs: number): string =>
  durationMs < 1_000
    ? `${durationMs} ms`
    : durationMs < 10_000
      ? `${(durationMs / 1_000).toFixed(1)} s`
      : secondsText(durationMs / 1_000);

export const TRENDS: Record<Trend, string> = { steady: "", growing: "growing", shrinking: "shrinking" };

export function describeRail(row: GroupPartition): string {
  const known = (name: string, value: string | null): string =>
    `${name} ${value === null ? "unknown" : formatCount(value)}`;
  const doubt = row.position_doubt ? ` (${DOUBTS[row.position_doubt]})` : "";
  return [
    known("Log start", row.log_start_offset),
    known("committed", row.committed),
    known("position", row.position) + doubt,
    known("high watermark", row.high_watermark),
    ...(heldBackCount(row) === 0n ? [] : [known("last stable offset", row.last_stable_offset)]),
    row.lag === null ? "lag unknown" : `${recordsText(row.lag)} not read`,
  ].join(", ");
}

/** What a crash of the owner would repeat. */
export function repeatText(row: GroupPartition): string | null {
  if (row.repeat_count === null || row.repeat_count === "0") return null;
  return `${recordsText(row.repeat_count)} sent and not committed: a crash would repeat them`;
}

/** "12 commits/min"; null = one look is not enough to tell. */
export function commitRateText(perSecond: number | null): string | null {
  if (perSecond === null) return null;
  if (perSecond === 0) return "no commits lately";
  const perMinute = perSecond * 60;
  if (perMinute < 0.95) return "less than 1 commit/min";
  if (perSecond >= 10) return `${formatCount(Math.round(perSecond))} commits/s`;
  const count = Math.round(perMinute);
  return `${formatCount(count)} ${count === 1 ? "commit" : "commits"}/min`;
}

/** Of all partitions; null where none is known. */
export function groupCommitRate(rows: readonly GroupPartition[]): number | null {
  const rates = rows.map((row) => row.commit_rate).filter((rate) => rate !== null);
  return rates.length === 0 ? null : rates.reduce((sum, rate) => sum + rate, 0);
}

/** Records between the last stable offset and the high watermark: read_committed readers do not get them yet. */
export function heldBackCount(row: GroupPartition): bigint {
  if (row.last_stable_offset === null || row.high_watermark === null) return 0n;
  const count = BigInt(row.high_watermark) - BigInt(row.last_stable_offset);
  return count > 0n ? count : 0n;
}

export const memberName = (member: GroupMember): string => member.instance_id ?? (member.client_id || member.id);

export function ownedText(member: GroupMember): string {
  const count = member.partitions.reduce((sum, { partitions }) => sum + partitions.length, 0);
  if (count === 0) return "owns nothing: there are more members than partitions, or the group rebalances";
  return member.partitions.map(({ topic, partitions }) => `${topic} ${rangesText(partitions)}`).join(" · ");
}

/** 0, 1, 2, 5 as "0–2, 5". */
export function rangesText(numbers: readonly number[]): string {
  const sorted = [...numbers].sort((a, b) => a - b);
  const ranges: [number, number][] = [];
  for (const number of sorted) {
    const last = ranges.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges
    .map(([from, to]) => (from === to ? String(from) : to === from + 1 ? `${from}, ${to}` : `${from}–${to}`))
    .join(", ");
}
