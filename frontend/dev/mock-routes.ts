// The REST contract over the mock cluster, as far as the pages use it.
import type { Verdict } from "../src/api/types.ts";
import type { MockCluster } from "./mock-cluster.ts";
import { groups } from "./mock-groups.ts";

export interface Answer {
  status: number;
  body?: unknown;
}

type Body = Record<string, unknown>;

const problem = (status: number, detail: string, more: Body = {}): Answer => ({
  status,
  body: { type: "about:blank", title: "Problem", status, detail, error_code: status * 100, message: detail, ...more },
});

const SESSION = {
  user: { email: "demo@example.com", name: "Demo User", is_operator: true },
  tenants: [
    { id: "demo", name: "Demo", role: "owner" },
    { id: "acme", name: "Acme Logistics", role: "developer" },
  ],
  csrf_token: "t",
  engine: { kind: "highwater" },
  kafka_bootstrap: "127.0.0.1:9093",
};

export function routes(cluster: MockCluster, method: string, url: URL, body: Body): Answer {
  const [, resource = "", name, part] = url.pathname.split("/").map(decodeURIComponent);
  if (resource === "session") return session(cluster, method, body);
  if (!cluster.isSignedIn) return problem(401, "Sign in first.");
  if (resource === "ws-tickets") return { status: 200, body: { ticket: "mock", expires_in_s: 30 } };
  if (resource === "tenant") return { status: 200, body: tenant(cluster) };
  if (resource === "api-keys") return keys(cluster, method, name, body);
  if (resource === "cluster") return operations(cluster, method, name, url, body);
  if (resource === "groups") return groups(cluster, name);
  if (resource === "topics" && part === "groups") return groups(cluster, undefined);
  if (resource === "topics") return topics(cluster, method, name, part, url, body);
  return problem(404, "No such resource.");
}

function session(cluster: MockCluster, method: string, body: Body): Answer {
  if (method === "POST") {
    if (body["password"] !== "demo") return problem(401, "Wrong email or password.");
    cluster.isSignedIn = true;
    if (String(body["email"]).startsWith("empty")) cluster.topics.clear();
  }
  if (method === "DELETE") {
    cluster.isSignedIn = false;
    return { status: 204 };
  }
  return cluster.isSignedIn ? { status: 200, body: SESSION } : problem(401, "Nobody is signed in.");
}

const usedPartitions = (cluster: MockCluster): number =>
  [...cluster.topics.values()].reduce((sum, made) => sum + made.topic.partitions, 0);

const tenant = (cluster: MockCluster) => ({
  id: "demo",
  name: "Demo",
  cluster_id: "lkc-demo1",
  role: "owner",
  kafka_bootstrap: "127.0.0.1:9093",
  quota: { partitions: { limit: 60, used: usedPartitions(cluster) }, topics: { limit: 50, used: cluster.topics.size } },
  policy: { name_pattern: "^[a-z0-9][a-z0-9._-]*$", max_partitions_per_topic: 24, retention_ms_max: "2592000000" },
});

function keys(cluster: MockCluster, method: string, id: string | undefined, body: Body): Answer {
  if (method === "GET") return { status: 200, body: { data: cluster.keys, next_page_token: null } };
  if (method === "POST") {
    const made = {
      id: `hw-${Math.random().toString(36).slice(2, 8)}`,
      name: String(body["name"]),
      created_at: new Date().toISOString(),
      created_by: "demo@example.com",
      last_used_at: null,
      status: "active",
    };
    cluster.keys.unshift(made);
    return { status: 201, body: { ...made, secret: "s3cr3t-Zm9vYmFyYmF6cXV4LW5vdC1yZWFs" } };
  }
  const found = cluster.keys.find((key) => key.id === id);
  if (found) found.status = "revoked";
  return { status: 204 };
}

function operations(cluster: MockCluster, method: string, part: string | undefined, url: URL, body: Body): Answer {
  if (!part) return { status: 200, body: cluster.brokers() };
  if (part === "elections") return { status: 200, body: { moved_count: 2 } };
  if (part === "brokers") return problem(409, "Broker 3 holds 24 replicas: drain it first");
  if (method === "DELETE") return { status: 200, body: { cancelled_count: 1 } };
  const plan = cluster.plan((body["leaving"] ?? []) as number[]);
  return url.searchParams.get("dry_run")
    ? { status: 200, body: plan }
    : { status: 202, body: { ...plan, is_begun: true } };
}

function topics(
  cluster: MockCluster,
  method: string,
  name: string | undefined,
  part: string | undefined,
  url: URL,
  body: Body,
): Answer {
  if (!name) {
    if (method === "POST") return createTopic(cluster, url, body);
    return {
      status: 200,
      body: { data: [...cluster.topics.values()].map((made) => made.topic), next_page_token: null },
    };
  }
  const made = cluster.topics.get(name);
  if (!made) return problem(404, `No topic ${name}.`);
  if (part === "partitions") return { status: 200, body: { data: cluster.rows(made), source: "telemetry" } };
  if (part === "records") {
    const record = (body["records"] as Body[])[0] as {
      key?: { data: string };
      value: { data: string };
      partition?: number;
    };
    const text = record.value.data;
    const written = cluster.append(
      made,
      record.partition ?? 0,
      record.key?.data ?? null,
      text.startsWith("{") ? { type: "json", text } : { type: "string", data: text },
    );
    return { status: 200, body: { results: [{ partition: written.partition, offset: written.offset }] } };
  }
  if (method === "DELETE") cluster.topics.delete(name);
  if (method === "PATCH") Object.assign(made.topic.configs, body["configs"]);
  return method === "DELETE" ? { status: 204 } : { status: 200, body: made.topic };
}

function createTopic(cluster: MockCluster, url: URL, body: Body): Answer {
  const name = String(body["name"]);
  const partitions = Number(body["partitions"] ?? 1);
  const left = 60 - usedPartitions(cluster) - partitions;
  const isNamed = /^[a-z0-9][a-z0-9._-]*$/.test(name);
  const verdicts: Verdict[] = [
    {
      rule: "name",
      ok: isNamed,
      message: isNamed
        ? "Follows the naming rule."
        : `“${name}” must be lower case letters, digits, dot, dash or underscore.`,
    },
    {
      rule: "name_free",
      ok: !cluster.topics.has(name),
      message: cluster.topics.has(name) ? "A topic with this name exists." : "The name is free.",
    },
    {
      rule: "partitions",
      ok: partitions <= 24,
      message:
        partitions <= 24
          ? `${partitions} is within the limit of 24.`
          : `At most 24 partitions per topic, got ${partitions}.`,
    },
    {
      rule: "partition_quota",
      ok: left >= 0,
      message: left >= 0 ? "Within the tenant's quota." : "The tenant's partition quota is used up.",
      quota_left: Math.max(0, left),
    },
  ];
  const failed = verdicts.filter((verdict) => !verdict.ok);
  if (failed.length) return problem(422, `${failed.length} rules failed`, { violations: failed, verdicts });
  if (url.searchParams.get("dry_run")) return { status: 200, body: { ok: true, verdicts } };
  return {
    status: 201,
    body: cluster.create(name, partitions, (body["configs"] ?? {}) as Record<string, string>).topic,
  };
}
