import { useEffect, useState } from "react";
import { ApiError } from "../../api/http";
import { useWatchTopic } from "../../api/live/hooks";
import { usePartitions, useTopic } from "../../api/topics";
import { Failure, Skeleton } from "../../components/controls";
import { Link } from "../../components/router";
import { ConfigTab } from "./config-tab";
import { DeleteTopicDialog } from "./delete-topic-dialog";
import { GroupsTab } from "./groups-tab";
import { MessagesTab } from "./messages-tab";
import { PartitionsTab } from "./partitions-tab";
import { TopicHeader } from "./topic-header";

export type TopicTab = "messages" | "partitions" | "groups" | "config";

const TABS: { tab: TopicTab; label: string }[] = [
  { tab: "messages", label: "Messages" },
  { tab: "partitions", label: "Partitions" },
  { tab: "groups", label: "Groups" },
  { tab: "config", label: "Configuration" },
];

export function TopicPage({ name, tab }: { name: string; tab: TopicTab }) {
  const topic = useTopic(name);
  const isPushed = useWatchTopic(name);
  const partitions = usePartitions(name, isPushed);
  const [isDeleting, setIsDeleting] = useState(false);
  useEffect(() => {
    document.title = `${name} · Highwater`;
  }, [name]);
  const isMissing = topic.error instanceof ApiError && topic.error.status === 404;
  if (isMissing) return <NoSuchTopic name={name} />;
  if (topic.error && !topic.data) return <Failure error={topic.error} onRetry={() => void topic.refetch()} />;
  if (!topic.data) return <Skeleton rows={8} />;
  const rows = partitions.data?.data ?? [];
  return (
    <>
      <TopicHeader topic={topic.data} rows={partitions.data?.data} onDelete={() => setIsDeleting(true)} />
      <Tabs name={name} current={tab} partitionCount={topic.data.partitions} />
      {tab === "messages" && <MessagesTab topic={name} rows={rows} />}
      {tab === "partitions" &&
        (partitions.error && !partitions.data ? (
          <Failure error={partitions.error} onRetry={() => void partitions.refetch()} />
        ) : (
          <PartitionsTab topic={name} rows={rows} isPushed={isPushed} />
        ))}
      {tab === "groups" && <GroupsTab topic={name} />}
      {tab === "config" && <ConfigTab topic={topic.data} />}
      {isDeleting && <DeleteTopicDialog topic={topic.data} rows={rows} onClose={() => setIsDeleting(false)} />}
    </>
  );
}

function Tabs({ name, current, partitionCount }: { name: string; current: TopicTab; partitionCount: number }) {
  return (
    <nav className="tabs" aria-label="Parts of the topic">
      {TABS.map(({ tab, label }) => (
        <Link
          key={tab}
          href={`/topics/${encodeURIComponent(name)}/${tab}`}
          aria-current={tab === current ? "page" : undefined}
        >
          {label}
          {tab === "partitions" && <span className="tab-count">{partitionCount}</span>}
        </Link>
      ))}
    </nav>
  );
}

function NoSuchTopic({ name }: { name: string }) {
  return (
    <div className="empty-page">
      <h1>No topic is called “{name}”</h1>
      <p className="muted">It may have been deleted, or it belongs to another tenant.</p>
      <Link className="button button-primary" href="/topics">
        To the topics
      </Link>
    </div>
  );
}
