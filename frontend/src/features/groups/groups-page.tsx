import { useEffect, useMemo } from "react";
import { useGroups } from "../../api/groups";
import { useWatchGroups } from "../../api/live/hooks";
import { useSession } from "../../api/session";
import type { Group, GroupStatus } from "../../api/types";
import { Chip, CodeBlock, Failure, Skeleton } from "../../components/controls";
import { groupHref, GroupStatusChip, toneOfStatus } from "../../components/group-status";
import { SearchIcon } from "../../components/icons";
import { lagText, secondsText } from "../../components/lag";
import { Link, navigate, useQueryText } from "../../components/router";
import { Sparkline } from "../../components/sparkline";
import { Ago } from "../../components/time";

export function GroupsPage() {
  const isPushed = useWatchGroups();
  const groups = useGroups(isPushed);
  const search = useSearch();
  useEffect(() => {
    document.title = "Groups · Highwater";
  }, []);
  const shown = useMemo(
    () => sorted((groups.data ?? []).filter((group) => group.name.toLowerCase().includes(search.text.toLowerCase()))),
    [groups.data, search.text],
  );
  return (
    <>
      <div className="page-head">
        <h1>Groups</h1>
        {groups.data && groups.data.length > 0 && <Health groups={groups.data} />}
      </div>
      {groups.error && !groups.data ? (
        <Failure error={groups.error} onRetry={() => void groups.refetch()} />
      ) : !groups.data ? (
        <Skeleton rows={6} />
      ) : groups.data.length === 0 ? (
        <NoGroups />
      ) : (
        <>
          <div className="toolbar">
            <label className="search">
              <SearchIcon />
              <span className="visually-hidden">Search groups</span>
              <input
                className="input"
                type="search"
                placeholder="Search by name"
                value={search.text}
                onChange={(event) => search.set(event.target.value)}
              />
            </label>
            <span className="muted toolbar-count" aria-live="polite">
              {countText(shown.length, groups.data.length)}
            </span>
            <span className="muted">{isPushed ? "Live" : "Refreshed every 2 s"}</span>
          </div>
          <div className="card">
            <GroupsTable groups={shown} />
          </div>
        </>
      )}
    </>
  );
}

const ORDER: readonly GroupStatus[] = ["stop", "rewind", "stall", "warn", "unknown", "ok"];

/** The worst first: that is what one comes for. */
function sorted(groups: readonly Group[]): Group[] {
  return [...groups].sort((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status) || a.name.localeCompare(b.name));
}

function Health({ groups }: { groups: readonly Group[] }) {
  const counts = ORDER.map((status) => ({ status, count: groups.filter((group) => group.status === status).length }));
  const troubled = counts.filter(({ status, count }) => count > 0 && !["ok", "unknown"].includes(status));
  if (troubled.length === 0) return <Chip tone="ok">All groups keep up</Chip>;
  return (
    <span className="group-health">
      {troubled.map(({ status, count }) => (
        <Chip key={status} tone={toneOfStatus(status)}>
          {count} {WORDS[status]}
        </Chip>
      ))}
    </span>
  );
}

const WORDS: Record<GroupStatus, string> = {
  ok: "OK",
  unknown: "unknown",
  warn: "falling behind",
  stall: "stalled",
  rewind: "rewound",
  stop: "stopped",
};

const ROWS_MAX = 500;

export function GroupsTable({ groups }: { groups: readonly Group[] }) {
  if (groups.length === 0) return <p className="table-empty muted">No group has this in its name.</p>;
  return (
    <>
      <table className="table stacked-table groups-table">
        <thead>
          <tr>
            <th>Group</th>
            <th>Status</th>
            <th className="num">Lag</th>
            <th title="The age of the oldest record that it has not read">Behind</th>
            <th>Last minutes</th>
            <th className="num">Members</th>
            <th>Reads</th>
            <th>Last commit</th>
          </tr>
        </thead>
        <tbody>
          {groups.slice(0, ROWS_MAX).map((group) => (
            <GroupRow key={group.name} group={group} />
          ))}
        </tbody>
      </table>
      {groups.length > ROWS_MAX && (
        <p className="table-empty muted">The first {ROWS_MAX} are shown: search to narrow the list.</p>
      )}
    </>
  );
}

function GroupRow({ group }: { group: Group }) {
  const href = groupHref(group.name);
  return (
    <tr data-group={group.name} onClick={(event) => event.target instanceof HTMLTableCellElement && navigate(href)}>
      <td className="group-name">
        <Link href={href}>{group.name}</Link>
        <span className="muted">{group.state}</span>
      </td>
      <td data-label="Status" className="group-status-cell">
        <GroupStatusChip status={group.status} words={group.words} />
        {group.status !== "ok" && <span className="muted group-words">{group.words}</span>}
      </td>
      <td className="num strong" data-label="Lag">
        {lagText(group.lag)}
      </td>
      <td data-label="Behind">
        {secondsText(group.lag_seconds)}
        {group.trend !== "steady" && <span className={`trend trend-${group.trend}`}>{group.trend}</span>}
      </td>
      <td data-label="Last minutes">
        <Sparkline values={group.lag_points} label={`Lag of ${group.name} over the last minutes`} />
      </td>
      <td className="num" data-label="Members">
        {group.member_count ?? "–"}
      </td>
      <td data-label="Reads" className="group-topics">
        {group.topics.length === 0 ? <span className="muted">–</span> : topicsText(group.topics)}
      </td>
      <td data-label="Last commit">
        {group.last_commit_ms === null ? <span className="muted">never</span> : <Ago at={group.last_commit_ms} />}
      </td>
    </tr>
  );
}

const TOPICS_SHOWN = 2;

const topicsText = (topics: readonly string[]): string =>
  topics.length <= TOPICS_SHOWN
    ? topics.join(", ")
    : `${topics.slice(0, TOPICS_SHOWN).join(", ")} and ${topics.length - TOPICS_SHOWN} more`;

const countText = (shown: number, total: number): string =>
  shown === total ? `${total} ${total === 1 ? "group" : "groups"}` : `${shown} of ${total}`;

function NoGroups() {
  const bootstrap = useSession().data?.kafka_bootstrap ?? "127.0.0.1:9102";
  const code = `kcat -b ${bootstrap} -G my-first-group hello`;
  return (
    <section className="card groups-empty">
      <h2>Nobody reads in a group yet</h2>
      <p className="muted">
        A group shares the partitions of its topics among its members and remembers how far they have read. Any Kafka
        client makes one by its name; it shows here a second later, with its lag in records and in seconds.
      </p>
      <CodeBlock label="A group of one, with kcat" code={code} />
    </section>
  );
}

/** The search is in the address, so that a filtered list can be sent to somebody. */
function useSearch() {
  const text = new URLSearchParams(useQueryText()).get("q") ?? "";
  const set = (next: string): void =>
    navigate(next ? `/groups?${new URLSearchParams({ q: next }).toString()}` : "/groups", "replace");
  return { text, set };
}
