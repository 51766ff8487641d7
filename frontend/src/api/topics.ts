// Topics and their partitions: one hook per question.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { ApiError, request } from "./http";
import { sessionKeys } from "./session";
import type { DryRun, NewRecord, NewTopic, Page, PartitionList, ProduceResult, Topic, Verdict } from "./types";

export const topicKeys = {
  all: ["topics"] as const,
  one: (name: string) => [...topicKeys.all, name] as const,
  partitions: (name: string) => [...topicKeys.one(name), "partitions"] as const,
};

const LIST_REFRESH_MS = 3_000;
const PAGES_MAX = 20;

const pathOf = (name: string): string => `/topics/${encodeURIComponent(name)}`;

async function readAllTopics(signal: AbortSignal): Promise<Topic[]> {
  const topics: Topic[] = [];
  let token: string | null = null;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const query: Record<string, string | number | undefined> = { page_size: 500, page_token: token ?? undefined };
    const answer: Page<Topic> = await request<Page<Topic>>("/topics", { query, signal });
    topics.push(...answer.data);
    token = answer.next_page_token;
    if (!token) break;
  }
  return topics;
}

export const useTopics = () =>
  useQuery({
    queryKey: topicKeys.all,
    queryFn: ({ signal }) => readAllTopics(signal),
    refetchInterval: LIST_REFRESH_MS,
  });

export const useTopic = (name: string) =>
  useQuery({
    queryKey: topicKeys.one(name),
    queryFn: ({ signal }) => request<Topic>(pathOf(name), { signal }),
    refetchInterval: (query) => (query.state.data?.status === "ready" ? 10_000 : 1_000),
  });

/** The first picture and the fallback; while the socket is live it pushes newer rows into the same cache entry. */
export const usePartitions = (name: string, isPushed: boolean) =>
  useQuery({
    queryKey: topicKeys.partitions(name),
    queryFn: ({ signal }) => request<PartitionList>(`${pathOf(name)}/partitions`, { signal }),
    refetchInterval: isPushed ? false : 2_000,
    refetchOnWindowFocus: !isPushed,
  });

/** A refused dry run is an answer, not a failure: both come back as verdicts. */
export async function dryRunTopic(topic: NewTopic, signal: AbortSignal): Promise<DryRun> {
  try {
    return await request<DryRun>("/topics", { method: "POST", query: { dry_run: "true" }, body: topic, signal });
  } catch (error) {
    const refused = error instanceof ApiError ? refusal(error) : null;
    if (refused) return refused;
    throw error;
  }
}

function refusal(error: ApiError): DryRun | null {
  const verdicts = error.problem["verdicts"] ?? error.problem["violations"];
  if (Array.isArray(verdicts)) return { ok: false, verdicts: verdicts as Verdict[] };
  if (error.status !== 400 && error.status !== 409 && error.status !== 422) return null;
  const fields = error.fieldErrors.map(({ field, message }) => ({ rule: field, ok: false, message }));
  return { ok: false, verdicts: fields.length ? fields : [{ rule: "request", ok: false, message: error.message }] };
}

export const useDryRun = (topic: NewTopic | null) =>
  useQuery({
    queryKey: ["dry-run", topic],
    queryFn: ({ signal }) => (topic ? dryRunTopic(topic, signal) : Promise.reject(new Error("nothing to check"))),
    enabled: topic !== null,
    placeholderData: (previous) => previous,
    staleTime: 2_000,
    gcTime: 10_000,
    retry: false,
  });

export function useCreateTopic() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (topic: NewTopic) => request<Topic>("/topics", { method: "POST", body: topic }),
    onSuccess: (topic) => {
      cache.setQueryData(topicKeys.one(topic.name), topic);
      void cache.invalidateQueries({ queryKey: topicKeys.all, exact: true });
      void cache.invalidateQueries({ queryKey: sessionKeys.tenant });
    },
  });
}

export interface TopicChange {
  partitions?: number;
  configs?: Record<string, string | null>;
}

export function useChangeTopic(name: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (change: TopicChange) => request<Topic>(pathOf(name), { method: "PATCH", body: change }),
    onSuccess: () => void cache.invalidateQueries({ queryKey: topicKeys.one(name) }),
  });
}

export function useDeleteTopic(name: string) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: () => request<Topic | null>(pathOf(name), { method: "DELETE" }),
    onSuccess: () => {
      cache.removeQueries({ queryKey: topicKeys.one(name) });
      void cache.invalidateQueries({ queryKey: topicKeys.all, exact: true });
      void cache.invalidateQueries({ queryKey: sessionKeys.tenant });
    },
  });
}

interface Produced {
  results: ProduceResult[];
}

export const useProduce = (name: string) =>
  useMutation({
    mutationFn: async (record: NewRecord) => {
      const body = { records: [record], acks: "all" };
      const answer = await request<Produced>(`${pathOf(name)}/records`, { method: "POST", body });
      const result = answer.results[0];
      if (!result || "error_code" in result) throw refusedRecord(result);
      return result;
    },
  });

function refusedRecord(result: ProduceResult | undefined): ApiError {
  const said = result && "message" in result ? result.message : "The server did not say where the record went.";
  return new ApiError(422, said, "Correct the record and send it again.");
}
