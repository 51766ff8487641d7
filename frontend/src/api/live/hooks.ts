import { useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useState, useSyncExternalStore } from "react";
import { groupKeys } from "../groups";
import { topicKeys } from "../topics";
import type { Group, GroupPage, PartitionList } from "../types";
import { live } from "./client";
import type { LiveEvent } from "./core";
import type { WatchTarget } from "./frames";

export const useLiveStatus = () => useSyncExternalStore(live.onStatus, live.getStatus);

/** Pushes what the socket says into the cache. True while it does. `take` must not change from one drawing to the next. */
function useWatch(target: WatchTarget, take: (event: LiveEvent) => boolean): boolean {
  const [isPushed, setIsPushed] = useState(false);
  const key = JSON.stringify(target);
  useEffect(() => {
    const leave = live.watch(JSON.parse(key) as WatchTarget, (event) => {
      if (take(event)) setIsPushed(true);
      else if (event.kind === "interrupted" || event.kind === "failed") setIsPushed(false);
    });
    return () => {
      leave();
      setIsPushed(false);
    };
  }, [key, take]);
  return isPushed;
}

/** Into the cache entry of usePartitions. */
export function useWatchTopic(name: string): boolean {
  const cache = useQueryClient();
  const take = useCallback(
    (event: LiveEvent) => {
      if (event.kind !== "partitions") return false;
      cache.setQueryData<PartitionList>(topicKeys.partitions(name), { data: event.rows, source: "telemetry" });
      return true;
    },
    [cache, name],
  );
  return useWatch({ topic: name }, take);
}

/** Into the cache entry of useGroup. */
export function useWatchGroup(name: string): boolean {
  const cache = useQueryClient();
  const take = useCallback(
    (event: LiveEvent) => {
      if (event.kind !== "group") return false;
      cache.setQueryData<GroupPage>(groupKeys.one(name), event.page);
      return true;
    },
    [cache, name],
  );
  return useWatch({ group: name }, take);
}

const ALL_GROUPS: WatchTarget = { groups: true };

/** Into the cache entry of useGroups. */
export function useWatchGroups(): boolean {
  const cache = useQueryClient();
  const take = useCallback(
    (event: LiveEvent) => {
      if (event.kind !== "groups") return false;
      cache.setQueryData<Group[]>(groupKeys.all, event.rows);
      return true;
    },
    [cache],
  );
  return useWatch(ALL_GROUPS, take);
}
