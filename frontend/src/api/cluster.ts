// The cluster, for operators: one hook per question.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { request } from "./http";
import type { Cluster, MovePlan, MoveWish } from "./types";

export const clusterKeys = { state: ["cluster"] as const, plan: (wish: MoveWish) => ["cluster-plan", wish] as const };

const REFRESH_MS = 1_000;

export const useCluster = () =>
  useQuery({
    queryKey: clusterKeys.state,
    queryFn: ({ signal }) => request<Cluster>("/cluster", { signal }),
    refetchInterval: REFRESH_MS,
  });

/** What would be moved. Made anew each time it is looked at: the cluster may have changed. */
export const useMovePlan = (wish: MoveWish) =>
  useQuery({
    queryKey: clusterKeys.plan(wish),
    queryFn: ({ signal }) =>
      request<MovePlan>("/cluster/moves", { method: "POST", query: { dry_run: "true" }, body: wish, signal }),
    gcTime: 0,
    staleTime: Infinity,
    retry: false,
  });

export interface MovesToBegin extends MoveWish {
  plan_id: string;
  throttle_bytes_per_s?: number;
}

export function useBeginMoves() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (moves: MovesToBegin) => request<MovePlan>("/cluster/moves", { method: "POST", body: moves }),
    onSuccess: () => void cache.invalidateQueries({ queryKey: clusterKeys.state }),
  });
}

export function useCancelMoves() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: () => request<{ cancelled_count: number }>("/cluster/moves", { method: "DELETE" }),
    onSuccess: () => void cache.invalidateQueries({ queryKey: clusterKeys.state }),
  });
}

export const useElectLeaders = () =>
  useMutation({ mutationFn: () => request<{ moved_count: number }>("/cluster/elections", { method: "POST" }) });

export function useRemoveBroker() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (broker: number) => request<null>(`/cluster/brokers/${broker}`, { method: "DELETE" }),
    onSuccess: () => void cache.invalidateQueries({ queryKey: clusterKeys.state }),
  });
}
