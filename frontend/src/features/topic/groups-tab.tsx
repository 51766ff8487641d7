// Who reads this topic: groups with their lag in it alone.
import { useTopicGroups } from "../../api/groups";
import type { Group } from "../../api/types";
import { Failure, Skeleton } from "../../components/controls";
import { groupHref, GroupStatusChip } from "../../components/group-status";
import { lagText, secondsText } from "../../components/lag";
import { Link } from "../../components/router";
import { Sparkline } from "../../components/sparkline";
import { Ago } from "../../components/time";

export function GroupsTab({ topic }: { topic: string }) {
  const groups = useTopicGroups(topic);
  if (groups.error && !groups.data) return <Failure error={groups.error} onRetry={() => void groups.refetch()} />;
  if (!groups.data) return <Skeleton rows={4} />;
  if (groups.data.length === 0) {
    return (
      <section className="card">
        <p className="table-empty muted">
          No group has an offset here. Readers without a group, such as this page’s live tail, leave no trace.
        </p>
      </section>
    );
  }
  return (
    <section className="card" aria-label="Groups that read this topic">
      <table className="table stacked-table">
        <thead>
          <tr>
            <th>Group</th>
            <th>Status here</th>
            <th className="num">Lag here</th>
            <th>Behind</th>
            <th>Group’s lag</th>
            <th className="num">Members</th>
            <th>Last commit</th>
          </tr>
        </thead>
        <tbody>
          {groups.data.map((group) => (
            <Row key={group.name} group={group} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Row({ group }: { group: Group }) {
  return (
    <tr data-group={group.name}>
      <td data-label="Group" className="place">
        <Link href={groupHref(group.name)}>{group.name}</Link>
      </td>
      <td data-label="Status here">
        <GroupStatusChip status={group.status} words={group.words} />
      </td>
      <td className="num strong" data-label="Lag here">
        {lagText(group.lag)}
      </td>
      <td data-label="Behind">{secondsText(group.lag_seconds)}</td>
      <td data-label="Group’s lag">
        <Sparkline values={group.lag_points} label={`Lag of ${group.name} over the last minutes`} />
      </td>
      <td className="num" data-label="Members">
        {group.member_count ?? "–"}
      </td>
      <td data-label="Last commit">
        {group.last_commit_ms === null ? <span className="muted">never</span> : <Ago at={group.last_commit_ms} />}
      </td>
    </tr>
  );
}
