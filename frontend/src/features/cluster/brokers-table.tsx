import { useEffect, useState } from "react";
import { formatBytes } from "../../api/int64";
import type { BrokerRow, BrokerStatus } from "../../api/types";
import { Chip, type ChipTone } from "../../components/controls";
import { damagedCount, formatSeconds, type Rates, ratesBetween, type Totals, totalsOf } from "./words";

const TONES: Record<BrokerStatus, ChipTone> = { up: "ok", draining: "warn", fenced: "warn", down: "bad" };
const TITLES: Record<BrokerStatus, string> = {
  up: "Leads, follows and serves",
  draining: "Gives its leaders away before it stops",
  fenced: "It runs, but the controller lets it neither lead nor count as in sync",
  down: "Nothing has been heard of it",
};

interface TableProps {
  brokers: BrokerRow[];
  atMs: number;
  onDrain: (broker: BrokerRow) => void;
  onRemove: (broker: BrokerRow) => void;
}

export function BrokersTable({ brokers, atMs, onDrain, onRemove }: TableProps) {
  const rates = useRates(brokers, atMs);
  return (
    <div className="table-wrap">
      <table className="table brokers-table">
        <thead>
          <tr>
            <th>Broker</th>
            <th>Status</th>
            <th className="num">Leads</th>
            <th className="num">Replicas</th>
            <th className="num">In / out</th>
            <th className="num">Logs</th>
            <th className="num">Disk free</th>
            <th className="num" title="How late the broker's timers run: a busy event loop shows here">
              Loop lag
            </th>
            <th className="num">Clients</th>
            <th>
              <span className="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {brokers.map((broker) => (
            <BrokerLine
              key={broker.id}
              broker={broker}
              rates={rates.get(broker.id) ?? null}
              canDrain={brokers.length > 1}
              onDrain={onDrain}
              onRemove={onRemove}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface LineProps {
  broker: BrokerRow;
  rates: Rates | null;
  canDrain: boolean;
  onDrain: (broker: BrokerRow) => void;
  onRemove: (broker: BrokerRow) => void;
}

function BrokerLine({ broker, rates, canDrain, onDrain, onRemove }: LineProps) {
  const isDown = broker.status === "down";
  const number = (value: number | null): string => (value === null || isDown ? "–" : String(value));
  const bytes = (value: string | null): string => (value === null || isDown ? "–" : formatBytes(value));
  return (
    <tr data-broker={broker.id}>
      <td data-label="Broker">
        <span className="broker-name">
          <strong>{broker.id}</strong>
          <span className="muted">
            {broker.host}
            {broker.rack && ` · ${broker.rack}`}
          </span>
          {broker.is_controller && <Chip tone="accent">Controller</Chip>}
          {!broker.is_voter && (
            <Chip tone="quiet" title="It follows the metadata, but does not vote">
              Observer
            </Chip>
          )}
        </span>
      </td>
      <td data-label="Status">
        <StatusChip broker={broker} />
      </td>
      <td className="num" data-label="Leads">
        {number(broker.leader_count)}
      </td>
      <td className="num" data-label="Replicas">
        {number(broker.replica_count)}
      </td>
      <td className="num" data-label="In / out">
        {rates && !isDown ? (
          <span className="broker-rates">
            <span>{formatBytes(rates.in)}/s</span>
            <span>{formatBytes(rates.out)}/s</span>
          </span>
        ) : (
          "–"
        )}
      </td>
      <td className="num" data-label="Logs">
        <span className="broker-logs">
          {bytes(broker.size_bytes)}
          {broker.offline_count ? <Chip tone="bad">{broker.offline_count} offline</Chip> : null}
          {damagedCount(broker) > 0 && (
            <Chip tone="bad" title="Something of them rotted on disk, and no other replica has had it so far">
              {damagedCount(broker)} damaged
            </Chip>
          )}
        </span>
      </td>
      <td className="num" data-label="Disk free">
        {broker.is_disk_low && !isDown ? (
          <Chip tone="bad">{bytes(broker.disk_free_bytes)}</Chip>
        ) : (
          bytes(broker.disk_free_bytes)
        )}
        {broker.is_degraded && (
          <Chip tone="bad" title="A flush has taken over ten seconds: others lead where they can">
            Stands still
          </Chip>
        )}
      </td>
      <td className="num" data-label="Loop lag">
        {isDown || broker.loop_lag_ms === null ? "–" : `${broker.loop_lag_ms} ms`}
      </td>
      <td className="num" data-label="Clients">
        {number(broker.connection_count)}
      </td>
      <td className="broker-actions">
        {canDrain && (
          <button
            type="button"
            className="button button-small"
            aria-label={`Drain broker ${broker.id}`}
            title="Move everything that it holds to the others"
            onClick={() => onDrain(broker)}
          >
            Drain…
          </button>
        )}
        {isDown && (
          <button
            type="button"
            className="button button-danger button-small"
            aria-label={`Remove broker ${broker.id}`}
            onClick={() => onRemove(broker)}
          >
            Remove…
          </button>
        )}
      </td>
    </tr>
  );
}

function StatusChip({ broker }: { broker: BrokerRow }) {
  const text = broker.status.slice(0, 1).toUpperCase() + broker.status.slice(1);
  const started = broker.started_ms === null ? "" : `; started ${new Date(broker.started_ms).toLocaleString()}`;
  return (
    <span className="broker-status">
      <Chip tone={TONES[broker.status]} title={TITLES[broker.status] + started}>
        {text}
      </Chip>
      {broker.status === "down" && broker.silent_for_s !== null && (
        <span className="muted">silent for {formatSeconds(broker.silent_for_s)}</span>
      )}
    </span>
  );
}

const WINDOW_MS = 5_000;

/** Rates over the last seconds, from the running totals that each look brings. */
function useRates(brokers: BrokerRow[], atMs: number): Map<number, Rates> {
  const [seen, setSeen] = useState<ReadonlyMap<number, Totals[]>>(new Map());
  useEffect(() => {
    setSeen((before) => withTotals(before, brokers, atMs));
  }, [brokers, atMs]);
  const rates = [...seen].flatMap(([id, totals]): [number, Rates][] => {
    const found = ratesBetween(totals[0], totals.at(-1) ?? null);
    return found ? [[id, found]] : [];
  });
  return new Map(rates);
}

function withTotals(
  before: ReadonlyMap<number, Totals[]>,
  brokers: BrokerRow[],
  atMs: number,
): ReadonlyMap<number, Totals[]> {
  return new Map(
    brokers.map((broker) => {
      const totals = totalsOf(broker, atMs);
      const known = (before.get(broker.id) ?? []).filter((one) => one.atMs >= atMs - WINDOW_MS && one.atMs < atMs);
      return [broker.id, totals ? [...known, totals] : known];
    }),
  );
}
