import { useEffect, useState, useSyncExternalStore } from "react";
import { live } from "../../api/live/client";
import { startOf, type TailChoice } from "./tail-choice";
import { TAIL_CREDIT, type TailState, TailStore } from "./tail-store";

const FLUSH_MS = 80;
const TICK_MS = 1_000;

const IDLE: TailState = {
  phase: "starting",
  isPaused: false,
  rows: [],
  receivedCount: 0,
  heldCount: 0,
  ratePerSecond: 0,
  message: null,
  nextOffsets: new Map(),
};
const noChange = (): (() => void) => () => undefined;
const idleState = (): TailState => IDLE;

/** A tail that lives as long as the page shows it; another choice opens another one. */
export function useTail(topic: string, { from, partition, offset }: TailChoice) {
  const [store, setStore] = useState<TailStore | null>(null);
  useEffect(() => {
    const opened = openTail(topic, { from, partition, offset });
    const timer = window.setInterval(opened.tick, TICK_MS);
    setStore(opened);
    return () => {
      window.clearInterval(timer);
      opened.close();
    };
  }, [topic, from, partition, offset]);
  const state = useSyncExternalStore(store?.subscribe ?? noChange, store?.getState ?? idleState);
  return { state, store };
}

function openTail(topic: string, choice: TailChoice): TailStore {
  const partitions = choice.partition === null ? {} : { partitions: [choice.partition] };
  return new TailStore({
    open: (listener) => live.tail({ topic, start: startOf(choice), credit: TAIL_CREDIT, ...partitions }, listener),
    nowMs: () => performance.now(),
    schedule: (work) => void window.setTimeout(work, FLUSH_MS),
  });
}
