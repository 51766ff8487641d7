// Who is signed in, and for which tenant the pages speak.
import { type QueryClient, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { ApiError, request, setCsrfToken, setTenantHeader } from "./http";
import type { Session, Tenant, TenantRef } from "./types";

const TENANT_STORAGE_KEY = "highwater.tenant";

export const sessionKeys = { session: ["session"] as const, tenant: ["tenant"] as const };

function adopt(session: Session): Session {
  setCsrfToken(session.csrf_token);
  setTenantHeader(currentTenant(session)?.id ?? null);
  return session;
}

async function readSession(): Promise<Session | null> {
  try {
    return adopt(await request<Session>("/session"));
  } catch (error) {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) return keepToken(error);
    throw error;
  }
}

function keepToken(error: ApiError): null {
  const token = error.problem["csrf_token"];
  if (typeof token === "string") setCsrfToken(token);
  return null;
}

/** null = nobody is signed in. */
export const useSession = () =>
  useQuery({ queryKey: sessionKeys.session, queryFn: readSession, staleTime: 60_000, retry: false });

export function useSignIn() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: (login: { email: string; password: string }) =>
      request<Session>("/session", { method: "POST", body: login }),
    onSuccess: (session) => {
      forgetTenantData(cache);
      cache.setQueryData(sessionKeys.session, adopt(session));
    },
  });
}

export function useSignOut() {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: () => request<null>("/session", { method: "DELETE" }),
    onSuccess: () => {
      cache.setQueryData(sessionKeys.session, null);
      forgetTenantData(cache);
    },
  });
}

/** Everything but the session itself, which the page around is watching. */
export const forgetTenantData = (cache: QueryClient): void =>
  cache.removeQueries({ predicate: (query) => query.queryKey[0] !== sessionKeys.session[0] });

export const useTenant = () =>
  useQuery({ queryKey: sessionKeys.tenant, queryFn: () => request<Tenant>("/tenant"), staleTime: 15_000 });

export function currentTenant(session: Session): TenantRef | undefined {
  const chosen = localStorage.getItem(TENANT_STORAGE_KEY);
  return session.tenants.find((tenant) => tenant.id === chosen) ?? session.tenants[0];
}

export function chooseTenant(tenantId: string): void {
  localStorage.setItem(TENANT_STORAGE_KEY, tenantId);
  setTenantHeader(tenantId);
}

const READ_ONLY_HINT = "You are a viewer of this tenant: ask an owner for the developer role.";

/** What a button that writes needs: nothing for a developer, disabled and a reason for a viewer. */
export const useWriteAccess = () => {
  const isViewer = useTenant().data?.role === "viewer";
  return isViewer ? { disabled: true, title: READ_ONLY_HINT } : {};
};
