// Groups: who reads what, how far they are, and where their offsets shall go. One hook per question.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { request } from "./http";
import type { Group, GroupPage, LogRecord, Page, ResetPlan, ResetStep, ResetWish } from "./types";

export const groupKeys = {
  all: ["groups"] as const,
  one: (name: string) => ["group", name] as const,
  ofTopic: (topic: string) => ["topic-groups", topic] as const,
  plan: (name: string, wish: ResetWish) => ["group-plan", name, wish] as const,
  preview: (path: string) => ["group-preview", path] as const,
};

const REFRESH_MS = 2_000;
const PAGES_MAX = 20;

const pathOf = (name: string): string => `/groups/${encodeURIComponent(name)}`;

/** Plain links, so that the browser saves the file. */
export const exportHref = (name: string): string => `/api/v1${pathOf(name)}/offsets.csv`;

async function readAllGroups(signal: AbortSignal): Promise<Group[]> {
  const groups: Group[] = [];
  let token: string | null = null;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query: Record<string, string | number | undefined> = { page_size: 500, page_token: token ?? undefined };
    const answer: Page<Group> = await request<Page<Group>>("/groups", { query, signal });
    groups.push(...answer.data);
    token = answer.next_page_token;
    if (!token) break;
  }
  return groups;
}

/** The first picture and the fallback; while the socket is live it pushes newer rows into the same cache entry. */
export const useGroups = (isPushed: boolean) =>
  useQuery({
    queryKey: groupKeys.all,
    queryFn: ({ signal }) => readAllGroups(signal),
    refetchInterval: isPushed ? false : REFRESH_MS,
    refetchOnWindowFocus: !isPushed,
  });

export const useGroup = (name: string, isPushed: boolean) =>
  useQuery({
    queryKey: groupKeys.one(name),
    queryFn: ({ signal }) => request<GroupPage>(pathOf(name), { signal }),
    refetchInterval: isPushed ? false : REFRESH_MS,
    refetchOnWindowFocus: !isPushed,
  });

export const useTopicGroups = (topic: string) =>
  useQuery({
    queryKey: groupKeys.ofTopic(topic),
    queryFn: ({ signal }) =>
      request<{ data: Group[] }>(`/topics/${encodeURIComponent(topic)}/groups`, { signal }).then(({ data }) => data),
    refetchInterval: REFRESH_MS,
  });

/** Where the offsets would go. Made anew each time it is looked at: the logs go on. */
export const useResetPlan = (name: string, wish: ResetWish) =>
  useQuery({
    queryKey: groupKeys.plan(name, wish),
    queryFn: ({ signal }) =>
      request<ResetPlan>(`${pathOf(name)}:reset-offsets`, {
        method: "POST",
        query: { dry_run: "true" },
        body: wish,
        signal,
      }),
    gcTime: 0,
    staleTime: Infinity,
    retry: false,
  });

/** The first record that would be read, as the caller may read it. */
export const usePreview = (path: string | null) =>
  useQuery({
    queryKey: groupKeys.preview(path ?? ""),
    queryFn: ({ signal }) =>
      request<{ records: LogRecord[] }>((path ?? "").replace("/api/v1", ""), { signal }).then(
        ({ records }) => records[0] ?? null,
      ),
    enabled: path !== null,
    staleTime: Infinity,
    retry: false,
  });

/** Exactly the offsets that the dry run has shown, whatever was written since. */
export const asShown = (steps: readonly ResetStep[]): ResetWish => ({
  to: "file",
  csv: steps.map(({ topic, partition, after }) => `${topic},${partition},${after}\n`).join(""),
});

export function useResetOffsets(name: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (wish: ResetWish) =>
      request<ResetPlan>(`${pathOf(name)}:reset-offsets`, { method: "POST", body: wish }),
    onSuccess: () => void cache.invalidateQueries({ queryKey: groupKeys.one(name) }),
  });
}

export function useDeleteGroup(name: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: () => request<null>(pathOf(name), { method: "DELETE" }),
    onSuccess: () => {
      cache.removeQueries({ queryKey: groupKeys.one(name) });
      void cache.invalidateQueries({ queryKey: groupKeys.all });
    },
  });
}
