// Records per second of each topic, from the counts that the list brings anyway: no request per topic.
import type { Topic } from "../../api/types";

export interface Sample {
  atMs: number;
  count: bigint;
}

export type RateHistory = ReadonlyMap<string, readonly Sample[]>;

const SAMPLES_MAX = 30;
const RATE_WINDOW_MS = 10_000;

export function addSamples(history: RateHistory, topics: readonly Topic[], atMs: number): RateHistory {
  return new Map(
    topics.map((topic) => {
      const samples = history.get(topic.name) ?? [];
      if (topic.record_count === null || samples.at(-1)?.atMs === atMs) return [topic.name, samples];
      return [topic.name, [...samples, { atMs, count: BigInt(topic.record_count) }].slice(-SAMPLES_MAX)];
    }),
  );
}

/** null = not known yet: one sample is no rate. */
export function ratePerSecond(samples: readonly Sample[]): number | null {
  const last = samples.at(-1);
  const first = last && samples.find((sample) => sample.atMs >= last.atMs - RATE_WINDOW_MS);
  if (!last || !first || first === last) return null;
  return between(first, last);
}

export const sparkline = (samples: readonly Sample[]): number[] =>
  samples.slice(1).map((sample, index) => between(samples[index] ?? sample, sample));

// Retention lowers the count; that is not a negative write rate.
function between(first: Sample, last: Sample): number {
  const seconds = (last.atMs - first.atMs) / 1_000;
  return seconds > 0 ? Math.max(0, Number(last.count - first.count) / seconds) : 0;
}
