import { formatCount } from "../../api/int64";
import type { PartitionRow } from "../../api/types";
import { Button } from "../../components/controls";
import { PauseIcon, PlayIcon } from "../../components/icons";
import { ROWS_MAX, type TailState, type TailStore } from "./tail-store";

interface TailBarProps {
  state: TailState;
  store: TailStore | null;
  rows: PartitionRow[];
  /** How many match the search; null = no search. */
  shownCount: number | null;
  onLatest: () => void;
}

const SKIP_OFFERED_FROM = 1_000n;

export function TailBar({ state, store, rows, shownCount, onLatest }: TailBarProps) {
  const behind = recordsBehind(state, rows);
  return (
    <div className="tail-bar">
      <Button onClick={state.isPaused ? store?.resume : store?.pause} disabled={!store || state.phase === "failed"}>
        {state.isPaused ? <PlayIcon /> : <PauseIcon />}
        {state.isPaused ? "Resume" : "Pause"}
      </Button>
      <span className={`tail-status tail-${toneOf(state)}`} role="status" aria-live="polite">
        {statusText(state)}
      </span>
      {!state.isPaused && (
        <span className="tail-rate" title="Records per second over the last 3 seconds">
          {Math.round(state.ratePerSecond).toLocaleString("en")}/s
        </span>
      )}
      {behind > 0n && (state.isPaused || behind > SKIP_OFFERED_FROM) && (
        <span className="tail-behind">
          {formatCount(behind)} behind
          <button type="button" className="link-button" onClick={onLatest}>
            skip to now
          </button>
        </span>
      )}
      <span className="tail-count muted" data-testid="tail-count" data-received={state.receivedCount}>
        {countText(state, shownCount)}
      </span>
      <button type="button" className="link-button" onClick={store?.clear} disabled={state.rows.length === 0}>
        Clear
      </button>
    </div>
  );
}

function countText(state: TailState, shownCount: number | null): string {
  const received = `${formatCount(state.receivedCount)} received`;
  if (shownCount !== null) return `${formatCount(shownCount)} match · ${received}`;
  return state.receivedCount > ROWS_MAX ? `${received}, last ${formatCount(ROWS_MAX)} shown` : received;
}

function toneOf(state: TailState): "ok" | "warn" | "bad" | "quiet" {
  if (state.phase === "failed") return "bad";
  if (state.phase === "interrupted") return "warn";
  return state.isPaused || state.phase === "starting" ? "quiet" : "ok";
}

function statusText(state: TailState): string {
  if (state.phase === "failed") return `Stopped: ${state.message ?? "the server refused"}`;
  if (state.phase === "interrupted") return state.message ? `Retrying: ${state.message}` : "Reconnecting…";
  if (state.phase === "starting") return "Connecting…";
  if (state.isPaused) return state.heldCount ? `Paused, ${formatCount(state.heldCount)} held` : "Paused";
  return state.phase === "caught-up" ? "Live" : "Reading";
}

function recordsBehind(state: TailState, rows: PartitionRow[]): bigint {
  return rows.reduce((sum, row) => {
    const next = state.nextOffsets.get(row.partition);
    const end = BigInt(row.high_watermark ?? 0);
    return next !== undefined && end > next ? sum + end - next : sum;
  }, 0n);
}
