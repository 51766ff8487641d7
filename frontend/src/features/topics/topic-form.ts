// The create form as values, and what it asks of the server. Pure.
import type { NewTopic } from "../../api/types";

export interface TopicForm {
  name: string;
  partitions: string;
  replicas: string;
  retention: string;
  cleanup: "" | "compact" | "compact,delete";
  durability: "" | "page-cache";
}

export const emptyForm: TopicForm = {
  name: "",
  partitions: "1",
  replicas: "",
  retention: "",
  cleanup: "",
  durability: "",
};

export const RETENTION_PRESETS = [
  { value: "", label: "7 days (default)" },
  { value: "3600000", label: "1 hour" },
  { value: "86400000", label: "1 day" },
  { value: "259200000", label: "3 days" },
  { value: "2592000000", label: "30 days" },
  { value: "-1", label: "For ever" },
] as const;

/** Only what was chosen is sent, so that the platform's defaults stay the platform's. */
export function toNewTopic(form: TopicForm): NewTopic {
  const configs: Record<string, string> = {};
  if (form.retention) configs["retention.ms"] = form.retention;
  if (form.cleanup) configs["cleanup.policy"] = form.cleanup;
  if (form.durability) configs["ack.durability"] = form.durability;
  return {
    name: form.name,
    partitions: Number(form.partitions) || 1,
    ...(form.replicas ? { replication_factor: Number(form.replicas) } : {}),
    ...(Object.keys(configs).length ? { configs } : {}),
  };
}

export const curlCommand = (topic: NewTopic, origin: string): string =>
  [
    "curl -u KEY_ID:SECRET -H 'Content-Type: application/json' \\",
    `  -d '${JSON.stringify({ ...topic, name: topic.name || "orders" })}' \\`,
    `  ${origin}/api/v1/topics`,
  ].join("\n");
