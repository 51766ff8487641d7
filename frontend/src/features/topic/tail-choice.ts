// Where a tail begins, kept in the address so that a link shows the same records.
import type { Start } from "../../api/live/frames";
import { navigate, useQueryText } from "../../components/router";

export type From = "recent" | "latest" | "earliest" | "offset";

export interface TailChoice {
  from: From;
  /** null = all. */
  partition: number | null;
  offset: string;
}

const RECENT_COUNT = 50;
const FROMS: readonly From[] = ["recent", "latest", "earliest", "offset"];

export function parseChoice(queryText: string): TailChoice {
  const query = new URLSearchParams(queryText);
  const partition = query.get("partition");
  const offset = query.get("offset") ?? "";
  const isOffset = /^\d+$/.test(offset) && partition !== null;
  const from = FROMS.find((known) => known === query.get("from"));
  return {
    from: isOffset ? "offset" : from && from !== "offset" ? from : "recent",
    partition: partition !== null && /^\d+$/.test(partition) ? Number(partition) : null,
    offset: isOffset ? offset : "",
  };
}

export function choiceQuery({ from, partition, offset }: TailChoice): string {
  const query = new URLSearchParams();
  if (from !== "recent") query.set("from", from);
  if (partition !== null) query.set("partition", String(partition));
  if (from === "offset") query.set("offset", offset);
  return query.toString() ? `?${query.toString()}` : "";
}

export function startOf(choice: TailChoice): Start {
  switch (choice.from) {
    case "recent":
      return { tail: RECENT_COUNT };
    case "offset":
      return { offsets: { [String(choice.partition ?? 0)]: choice.offset } };
    default:
      return choice.from;
  }
}

export function useTailChoice(topic: string): [TailChoice, (choice: TailChoice) => void] {
  const choice = parseChoice(useQueryText());
  const set = (next: TailChoice): void =>
    navigate(`/topics/${encodeURIComponent(topic)}/messages${choiceQuery(next)}`, "replace");
  return [choice, set];
}

export const recordLink = (topic: string, partition: number, offset: string): string =>
  `/topics/${encodeURIComponent(topic)}/messages${choiceQuery({ from: "offset", partition, offset })}`;
