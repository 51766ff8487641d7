// API keys of the current tenant. The secret is in the answer to the creation and nowhere else.
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { request } from "./http";
import type { ApiKey, NewApiKey, Page } from "./types";

const keyKeys = { all: ["api-keys"] as const };

export const useApiKeys = () =>
  useQuery({
    queryKey: keyKeys.all,
    queryFn: ({ signal }) => request<Page<ApiKey>>("/api-keys", { query: { page_size: 500 }, signal }),
    refetchInterval: 15_000,
  });

export function useCreateApiKey() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (name: string) => request<NewApiKey>("/api-keys", { method: "POST", body: { name } }),
    onSuccess: () => void cache.invalidateQueries({ queryKey: keyKeys.all }),
  });
}

export function useRevokeApiKey() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => request<null>(`/api-keys/${encodeURIComponent(id)}`, { method: "DELETE" }),
    onSuccess: () => void cache.invalidateQueries({ queryKey: keyKeys.all }),
  });
}
