import type { Topic, TopicStatus, Trouble } from "../api/types";
import { Chip, type ChipTone } from "./controls";

const TONES: Record<TopicStatus, ChipTone> = {
  ready: "ok",
  creating: "accent",
  updating: "accent",
  deleting: "warn",
  failed: "bad",
};

export function TopicStatusChip({ topic }: { topic: Topic }) {
  return (
    <Chip tone={TONES[topic.status]} title={topic.status_detail ?? ""}>
      {topic.status.slice(0, 1).toUpperCase() + topic.status.slice(1)}
    </Chip>
  );
}

const TROUBLES: Record<Trouble, { label: string; tone: ChipTone; title: string }> = {
  leaderless: { label: "No leader", tone: "bad", title: "A partition can be neither written nor read" },
  under_min_isr: { label: "Under min ISR", tone: "bad", title: "A partition refuses writes with acks=all" },
  under_replicated: { label: "Under-replicated", tone: "warn", title: "A copy is missing; nothing is lost" },
};

export function TroubleChip({ trouble }: { trouble: Trouble }) {
  const { label, tone, title } = TROUBLES[trouble];
  return (
    <Chip tone={tone} title={title}>
      {label}
    </Chip>
  );
}
