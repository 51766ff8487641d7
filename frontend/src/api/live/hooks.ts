import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState, useSyncExternalStore } from "react";
import { topicKeys } from "../topics";
import type { PartitionList } from "../types";
import { live } from "./client";

export const useLiveStatus = () => useSyncExternalStore(live.onStatus, live.getStatus);

/** Pushes the socket's partition rows into the cache entry of usePartitions. True while they arrive. */
export function useWatchTopic(name: string): boolean {
  const cache = useQueryClient();
  const [isPushed, setIsPushed] = useState(false);
  useEffect(() => {
    const leave = live.watch(name, (event) => {
      if (event.kind === "partitions") {
        cache.setQueryData<PartitionList>(topicKeys.partitions(name), { data: event.rows, source: "telemetry" });
        setIsPushed(true);
      } else if (event.kind === "interrupted" || event.kind === "failed") {
        setIsPushed(false);
      }
    });
    return () => {
      leave();
      setIsPushed(false);
    };
  }, [cache, name]);
  return isPushed;
}
