// The only place that calls fetch. Every failure becomes an ApiError that says what happened and what to do next.

export interface FieldError {
  field: string;
  message: string;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly advice: string,
    readonly problem: Record<string, unknown> = {},
  ) {
    super(message);
    this.name = "ApiError";
  }

  /** Nothing answered, or only a proxy did. */
  get isServerAway(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }

  get fieldErrors(): FieldError[] {
    const errors = this.problem["errors"];
    return Array.isArray(errors) ? (errors as FieldError[]) : [];
  }
}

interface Identity {
  csrfToken: string | null;
  tenantId: string | null;
}

const identity: Identity = { csrfToken: null, tenantId: null };

export const setCsrfToken = (token: string): void => void (identity.csrfToken = token);
export const setTenantHeader = (tenantId: string | null): void => void (identity.tenantId = tenantId);

export interface Call {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  signal?: AbortSignal;
}

export async function request<T>(path: string, call: Call = {}): Promise<T> {
  const response = await send(path, call);
  const body = await readBody(response);
  if (!response.ok) throw toApiError(response, body);
  return body as T;
}

async function send(path: string, call: Call): Promise<Response> {
  const method = call.method ?? "GET";
  const init: RequestInit = { method, headers: headersFor(method, call.body), credentials: "same-origin" };
  if (call.body !== undefined) init.body = JSON.stringify(call.body);
  if (call.signal) init.signal = call.signal;
  try {
    return await fetch(`/api/v1${path}${queryText(call.query)}`, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "Highwater does not answer.", "Check that it runs: `make run` starts it.");
  }
}

function headersFor(method: string, body: unknown): Record<string, string> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (identity.tenantId) headers["X-Highwater-Tenant"] = identity.tenantId;
  const token = csrfCookie() ?? identity.csrfToken;
  if (method !== "GET" && token) headers["X-CSRFToken"] = token;
  return headers;
}

// Django renews the cookie at sign-in, so where it can be read it is newer than any answer kept in memory.
function csrfCookie(): string | null {
  return /(?:^|;\s*)csrftoken=([^;]+)/.exec(document.cookie)?.[1] ?? null;
}

function queryText(query: Call["query"]): string {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== "");
  return pairs.length ? `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}` : "";
}

async function readBody(response: Response): Promise<unknown> {
  const text = await response.text();
  if (!text) return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return { detail: response.ok ? "The answer was not JSON." : null };
  }
}

function toApiError(response: Response, body: unknown): ApiError {
  const problem = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  const said = [problem["detail"], problem["message"], problem["title"]].find((text) => typeof text === "string");
  return new ApiError(response.status, said ?? `The server answered ${response.status}.`, adviceFor(response), problem);
}

function adviceFor(response: Response): string {
  switch (response.status) {
    case 401:
      return "Sign in again.";
    case 403:
      return "Your role does not allow this: ask an owner of the tenant.";
    case 404:
      return "It may have been deleted; go back to the list.";
    case 409:
      return response.url.includes("/topics") ? "Choose another name, or open the one that exists." : "";
    case 413:
      return "Send less at once.";
    case 429:
      return `Wait ${response.headers.get("Retry-After") ?? "a few"} seconds, then try again.`;
    case 502:
    case 503:
    case 504:
      return "Check that Highwater runs: `make run` starts it.";
    default:
      return response.status >= 500 ? "Try again; if it stays, look in the server's log." : "";
  }
}
