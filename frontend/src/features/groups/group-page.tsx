import { type ReactNode, useEffect, useState } from "react";
import { exportHref, useGroup } from "../../api/groups";
import { ApiError } from "../../api/http";
import { useWatchGroup } from "../../api/live/hooks";
import { useWriteAccess } from "../../api/session";
import type { GroupPage as Page } from "../../api/types";
import { Button, Chip, Failure, Skeleton } from "../../components/controls";
import { GroupStatusChip, toneOfStatus } from "../../components/group-status";
import { TrashIcon } from "../../components/icons";
import { lagText, secondsText } from "../../components/lag";
import { Link } from "../../components/router";
import { Ago } from "../../components/time";
import { DeleteGroupDialog } from "./delete-group-dialog";
import { LagChart } from "./lag-chart";
import { MembersCard } from "./members-card";
import { colorsOf } from "./member-colors";
import { RailsCard } from "./rails-card";
import { ResetDialog } from "./reset-dialog";
import { TimelineCard } from "./timeline-card";
import { commitRateText, groupCommitRate } from "./words";

export function GroupPage({ name }: { name: string }) {
  const isPushed = useWatchGroup(name);
  const group = useGroup(name, isPushed);
  useEffect(() => {
    document.title = `${name} · Highwater`;
  }, [name]);
  const isMissing = group.error instanceof ApiError && group.error.status === 404;
  if (isMissing) return <NoSuchGroup name={name} />;
  if (group.error && !group.data) return <Failure error={group.error} onRetry={() => void group.refetch()} />;
  if (!group.data) return <Skeleton rows={8} />;
  return <GroupContent group={group.data} isPushed={isPushed} />;
}

function GroupContent({ group, isPushed }: { group: Page; isPushed: boolean }) {
  const [open, setOpen] = useState<"reset" | "delete" | null>(null);
  const colors = colorsOf(group.members);
  const close = (): void => setOpen(null);
  return (
    <>
      <Header group={group} onReset={() => setOpen("reset")} onDelete={() => setOpen("delete")} />
      <LagChart group={group} isPushed={isPushed} />
      <RailsCard group={group} colors={colors} isPushed={isPushed} />
      <div className="group-columns">
        <MembersCard group={group} colors={colors} />
        <TimelineCard events={group.events} protocol={group.protocol} />
      </div>
      {open === "reset" && <ResetDialog group={group} onClose={close} />}
      {open === "delete" && <DeleteGroupDialog group={group} onClose={close} />}
    </>
  );
}

interface HeaderProps {
  group: Page;
  onReset: () => void;
  onDelete: () => void;
}

function Header({ group, onReset, onDelete }: HeaderProps) {
  const writeAccess = useWriteAccess();
  return (
    <header className="topic-head">
      <nav className="crumbs" aria-label="Where you are">
        <Link href="/groups">Groups</Link> <span aria-hidden="true">/</span>
      </nav>
      <div className="page-head">
        <h1>{group.name}</h1>
        <GroupStatusChip status={group.status} />
        <Chip tone={group.state === "Stable" ? "accent" : "quiet"} title="The group's state, by Kafka's names">
          {group.state}
        </Chip>
        <span className="topic-head-space" />
        <a className="button button-plain" href={exportHref(group.name)} download>
          Export offsets
        </a>
        <Button onClick={onReset} {...writeAccess}>
          Reset offsets…
        </Button>
        <Button tone="danger" onClick={onDelete} {...writeAccess}>
          <TrashIcon />
          Delete
        </Button>
      </div>
      <p className={`group-verdict group-verdict-${toneOfStatus(group.status)}`} data-testid="group-words">
        {group.worst && group.partition_count > 1 && group.status !== "ok" && group.member_count !== 0 && (
          <strong>
            {group.worst.topic}-{group.worst.partition}:{" "}
          </strong>
        )}
        {group.words}
      </p>
      <Facts group={group} />
    </header>
  );
}

function Facts({ group }: { group: Page }) {
  return (
    <dl className="facts group-facts">
      <Fact label="Lag">
        {lagText(group.lag)}
        <small className="muted"> records</small>
      </Fact>
      <Fact label="Behind" title="The age of the oldest record that it has not read, by the record's own timestamp">
        {secondsText(group.lag_seconds)}
      </Fact>
      {group.eta_seconds !== null && (
        <Fact label="Caught up in" title="At the pace of the last minutes">
          {secondsText(group.eta_seconds)}
        </Fact>
      )}
      <Fact label="Members">{group.member_count ?? "–"}</Fact>
      <Fact label={group.protocol === "consumer" ? "Epoch" : "Generation"} title="Grows with every rebalance">
        {group.generation ?? "–"}
      </Fact>
      <Fact label="Assignor" title={`Protocol: ${group.protocol}`}>
        {group.assignor ?? "–"}
      </Fact>
      <Fact
        label="Coordinator"
        title="The broker that leads this partition of __consumer_offsets keeps the group's members and offsets"
      >
        broker {group.coordinator}
        {group.offsets_partition !== null && (
          <small className="muted"> __consumer_offsets-{group.offsets_partition}</small>
        )}
      </Fact>
      <Fact label="Commit rate" title="Of all partitions, over the last five minutes">
        {commitRateText(groupCommitRate(group.partitions)) ?? "–"}
        <small className="muted">
          {" "}
          last {group.last_commit_ms === null ? "never" : <Ago at={group.last_commit_ms} />}
        </small>
      </Fact>
    </dl>
  );
}

function Fact({ label, title, children }: { label: string; title?: string; children: ReactNode }) {
  return (
    <div title={title} data-fact={label}>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function NoSuchGroup({ name }: { name: string }) {
  return (
    <div className="empty-page">
      <h1>No group is called “{name}”</h1>
      <p className="muted">It may have been deleted, its offsets may have expired, or it belongs to another tenant.</p>
      <Link className="button button-primary" href="/groups">
        To the groups
      </Link>
    </div>
  );
}
