// How a group is doing: the same chip and the same words wherever a group is shown.
import type { GroupStatus } from "../api/types";
import { Chip, type ChipTone } from "./controls";

const STATUSES: Record<GroupStatus, { tone: ChipTone; label: string; title: string }> = {
  ok: { tone: "ok", label: "OK", title: "It reads as fast as others write, or is catching up" },
  unknown: { tone: "quiet", label: "Unknown", title: "Nothing was committed yet, or the brokers have not told" },
  warn: { tone: "warn", label: "Falling behind", title: "It reads, but the lag does not shrink" },
  stall: { tone: "bad", label: "Stalled", title: "Commits go on, but always of the same offset" },
  rewind: { tone: "warn", label: "Rewound", title: "The offset went back: records are read again" },
  stop: { tone: "bad", label: "Stopped", title: "Nothing was committed for a while, though records wait" },
};

export const toneOfStatus = (status: GroupStatus): ChipTone => STATUSES[status].tone;

export function GroupStatusChip({ status, words }: { status: GroupStatus; words?: string }) {
  const { tone, label, title } = STATUSES[status];
  return (
    <Chip tone={tone} title={words ?? title}>
      {label}
    </Chip>
  );
}

export const groupHref = (name: string): string => `/groups/${encodeURIComponent(name)}`;
