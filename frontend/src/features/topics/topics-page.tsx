import { useEffect, useMemo, useRef, useState } from "react";
import { useTenant, useWriteAccess } from "../../api/session";
import { useTopics } from "../../api/topics";
import type { Tenant } from "../../api/types";
import { Button, Failure, Meter, Skeleton } from "../../components/controls";
import { PlusIcon, SearchIcon } from "../../components/icons";
import { navigate, useQueryText } from "../../components/router";
import { CreateTopicDialog } from "./create-topic-dialog";
import { FirstMessage } from "./first-message";
import { TopicsTable } from "./topics-table";

export function TopicsPage() {
  const topics = useTopics();
  const tenant = useTenant();
  const writeAccess = useWriteAccess();
  const [isCreating, setIsCreating] = useState(false);
  const search = useSearch();
  const searchBox = useRef<HTMLInputElement>(null);
  usePageKeys({ "/": () => searchBox.current?.focus(), c: () => setIsCreating(true) });
  useEffect(() => {
    document.title = "Topics · Highwater";
  }, []);
  const shown = useMemo(
    () => (topics.data ?? []).filter((topic) => topic.name.toLowerCase().includes(search.text.toLowerCase())),
    [topics.data, search.text],
  );
  return (
    <>
      <div className="page-head">
        <h1>Topics</h1>
        {tenant.data && <Quotas tenant={tenant.data} />}
      </div>
      {topics.data?.length === 0 ? (
        <FirstMessage tenant={tenant.data} onCreate={() => setIsCreating(true)} />
      ) : (
        <>
          <div className="toolbar">
            <label className="search">
              <SearchIcon />
              <span className="visually-hidden">Search topics</span>
              <input
                ref={searchBox}
                className="input"
                type="search"
                placeholder="Search by name"
                value={search.text}
                onChange={(event) => search.set(event.target.value)}
              />
              <kbd className="kbd">/</kbd>
            </label>
            <span className="muted toolbar-count" aria-live="polite">
              {topics.data && countText(shown.length, topics.data.length)}
            </span>
            <Button tone="primary" onClick={() => setIsCreating(true)} title="Shortcut: c" {...writeAccess}>
              <PlusIcon />
              Create topic
            </Button>
          </div>
          {topics.error && !topics.data ? (
            <Failure error={topics.error} onRetry={() => void topics.refetch()} />
          ) : (
            <div className="card">
              {topics.data ? <TopicsTable topics={shown} atMs={topics.dataUpdatedAt} /> : <Skeleton rows={6} />}
            </div>
          )}
        </>
      )}
      {isCreating && <CreateTopicDialog tenant={tenant.data} onClose={() => setIsCreating(false)} />}
    </>
  );
}

const countText = (shown: number, total: number): string =>
  shown === total ? `${total} ${total === 1 ? "topic" : "topics"}` : `${shown} of ${total}`;

function Quotas({ tenant }: { tenant: Tenant }) {
  return (
    <div className="quotas">
      <Meter label="Partitions" used={tenant.quota.partitions.used} limit={tenant.quota.partitions.limit} />
      <Meter label="Topics" used={tenant.quota.topics.used} limit={tenant.quota.topics.limit} />
    </div>
  );
}

/** The search is in the address, so that a filtered list can be sent to somebody. */
function useSearch() {
  const text = new URLSearchParams(useQueryText()).get("q") ?? "";
  const set = (next: string): void =>
    navigate(next ? `/topics?${new URLSearchParams({ q: next }).toString()}` : "/topics", "replace");
  return { text, set };
}

function usePageKeys(keys: Record<string, () => void>): void {
  const latest = useRef(keys);
  useEffect(() => {
    latest.current = keys;
  });
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isTyping = (event.target as HTMLElement).closest("input, textarea, select, dialog");
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      const action = latest.current[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}
