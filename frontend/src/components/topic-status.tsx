import type { Topic, TopicStatus } from "../api/types";
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
