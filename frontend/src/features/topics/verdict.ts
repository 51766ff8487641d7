// What the create dialog says about a topic that is being typed. Pure: form state in, words out.
import type { DryRun, Policy, QuotaUse, Verdict } from "../../api/types";
import { formatDuration } from "../../components/time";

export interface VerdictRow {
  rule: string;
  label: string;
  state: "ok" | "fail" | "pending";
  message: string;
}

export interface VerdictView {
  tone: "quiet" | "checking" | "ok" | "bad";
  headline: string;
  rows: VerdictRow[];
  canSubmit: boolean;
}

export interface VerdictInput {
  name: string;
  /** The last answer; it may still speak of what was typed a moment ago. */
  answer: DryRun | undefined;
  isAnswerCurrent: boolean;
  error: Error | null;
  policy: Policy | undefined;
}

const LABELS: Record<string, string> = {
  name: "Name",
  name_pattern: "Naming rule",
  exists: "Free name",
  name_free: "Free name",
  unique: "Free name",
  partitions: "Partitions",
  max_partitions_per_topic: "Partitions",
  quota: "Quota",
  quota_partitions: "Partition quota",
  partition_quota: "Partition quota",
  quota_topics: "Topic quota",
  topic_quota: "Topic quota",
  retention: "Retention",
  retention_ms: "Retention",
  replication_factor: "Replication",
  configs: "Configuration",
};

export const ruleLabel = (rule: string): string => LABELS[rule] ?? sentenceCase(rule.replace(/[._-]+/g, " "));

const sentenceCase = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1);

export function verdictView(input: VerdictInput): VerdictView {
  if (!input.name) {
    return { tone: "quiet", headline: "Rules for a new topic", rows: policyRows(input.policy), canSubmit: false };
  }
  if (input.error) {
    // The rules are checked again on create, so a failing check must not lock the form.
    return { tone: "bad", headline: `The rules cannot be checked: ${input.error.message}`, rows: [], canSubmit: true };
  }
  if (!input.answer) return { tone: "checking", headline: "Checking the rules…", rows: [], canSubmit: true };
  return answeredView(input.answer, input.isAnswerCurrent);
}

function answeredView(answer: DryRun, isCurrent: boolean): VerdictView {
  const rows = answer.verdicts.map(toRow).sort((a, b) => Number(a.state === "ok") - Number(b.state === "ok"));
  if (!isCurrent) return { tone: "checking", headline: "Checking the rules…", rows, canSubmit: true };
  const failCount = rows.filter((row) => row.state === "fail").length;
  if (answer.ok) return { tone: "ok", headline: "Ready to create: every rule is met", rows, canSubmit: true };
  const headline = failCount === 1 ? "1 rule is not met" : `${failCount} rules are not met`;
  return { tone: "bad", headline, rows, canSubmit: false };
}

function toRow(verdict: Verdict): VerdictRow {
  const left = verdict.quota_left ?? null;
  const quota = left === null ? "" : ` · ${left.toLocaleString("en")} left`;
  return {
    rule: verdict.rule,
    label: ruleLabel(verdict.rule),
    state: verdict.ok ? "ok" : "fail",
    message: (verdict.message || expectation(verdict)) + (verdict.message.includes("left") ? "" : quota),
  };
}

const plain = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function expectation(verdict: Verdict): string {
  const got = verdict.got === undefined ? "" : `, got ${plain(verdict.got)}`;
  return verdict.want === undefined ? "" : `Wants ${plain(verdict.want)}${got}`;
}

function policyRows(policy: Policy | undefined): VerdictRow[] {
  const rows: [string, string | null][] = [
    ["name", policy?.name_pattern ? `Matches ${policy.name_pattern}` : "Letters, digits, dot, dash, underscore"],
    ["partitions", policy?.max_partitions_per_topic ? `At most ${policy.max_partitions_per_topic} per topic` : null],
    ["retention", policy?.retention_ms_max ? `At most ${formatDuration(Number(policy.retention_ms_max))}` : null],
  ];
  return rows.flatMap(([rule, message]) =>
    message ? [{ rule, label: ruleLabel(rule), state: "pending" as const, message }] : [],
  );
}

/** What creating this would leave of the partition quota; null where there is no limit. */
export const partitionsLeft = (quota: QuotaUse | undefined, wanted: number): number | null =>
  quota?.limit == null ? null : quota.limit - quota.used - wanted;
