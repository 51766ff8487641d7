// The settings of a topic as a table: what was set, and the common ones at their defaults. Pure.
import { formatBytes } from "../../api/int64";
import { formatDuration } from "../../components/time";

export interface ConfigRow {
  name: string;
  value: string;
  meaning: string;
  isSet: boolean;
  doc: string;
  isEditable: boolean;
}

interface Known {
  fallback: string;
  doc: string;
}

const KNOWN: Record<string, Known> = {
  "retention.ms": { fallback: "604800000", doc: "Records older than this are deleted. -1 keeps them for ever." },
  "retention.bytes": { fallback: "-1", doc: "Each partition is cut to this size. -1 means no limit." },
  "cleanup.policy": { fallback: "delete", doc: "delete: by age and size. compact: the last record of each key stays." },
  "ack.durability": { fallback: "fsync", doc: "fsync: acknowledged when on disk. page-cache: Apache Kafka's promise." },
  "max.message.bytes": { fallback: "1048588", doc: "Largest batch of records that is accepted." },
  "min.insync.replicas": { fallback: "", doc: "How many replicas must have a write with acks=all." },
  "segment.bytes": { fallback: "1073741824", doc: "A new file is begun at this size." },
};

/** `allowed`: what the tenant's policy lets be set; null = not known, then the server decides. */
export function configRows(configs: Record<string, string>, allowed: readonly string[] | null): ConfigRow[] {
  const names = [...new Set([...Object.keys(KNOWN), ...Object.keys(configs).sort()])];
  const isEditable = (name: string): boolean => allowed === null || allowed.includes(name);
  return names.flatMap((name) => {
    const value = configs[name] ?? KNOWN[name]?.fallback ?? "";
    const isSet = name in configs;
    if (!isSet && !value) return [];
    return [
      {
        name,
        value,
        isSet,
        meaning: meaningOf(name, value),
        doc: KNOWN[name]?.doc ?? "",
        isEditable: isEditable(name),
      },
    ];
  });
}

export function meaningOf(name: string, value: string): string {
  if (!/^-?\d+$/.test(value)) return "";
  if (name.endsWith(".ms")) return value === "-1" ? "for ever" : formatDuration(Number(value));
  if (name.endsWith(".bytes")) return value === "-1" ? "no limit" : formatBytes(value);
  return "";
}
