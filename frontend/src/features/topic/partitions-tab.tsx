import { formatBytes, formatCount, type Int64Text } from "../../api/int64";
import type { PartitionRow, Replica } from "../../api/types";
import { Chip, type ChipTone } from "../../components/controls";
import { Link } from "../../components/router";
import { OffsetRail } from "./offset-rail";
import { stateOf } from "./partition-state";
import { logEnd, recordsIn } from "./rail";

export function PartitionsTab({ topic, rows, isPushed }: { topic: string; rows: PartitionRow[]; isPushed: boolean }) {
  const largest = rows.reduce((most, row) => (recordsIn(row) > most ? recordsIn(row) : most), 1n);
  return (
    <section className="card" aria-label="Partitions">
      <div className="rail-legend">
        <span>
          <i className="legend-water" /> readable, up to the high watermark
        </span>
        <span>
          <i className="legend-pending" /> written, not yet safe
        </span>
        <span>
          <i className="legend-leader" /> leader
        </span>
        <span>
          <i className="legend-follower" /> in-sync replica
        </span>
        <span>
          <i className="legend-out" /> out of sync
        </span>
        <span className="rail-legend-end">{isPushed ? "Live, once a second" : "Refreshed every 2 s"}</span>
      </div>
      <div className="table-wrap">
        <table className="table partitions-table">
          <thead>
            <tr>
              <th className="num">Partition</th>
              <th>Offsets</th>
              <th className="num">Log start</th>
              <th className="num" title="High watermark: readers see everything below it">
                HW
              </th>
              <th className="num">Size</th>
              <th className="num">Leader</th>
              <th className="num" title="Leader epoch: grows with every change of leader">
                Epoch
              </th>
              <th title="Log end offset of each replica: the next record gets this one. ISR = in sync, OSR = out of sync">
                Replicas and their log ends
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <PartitionLine key={row.partition} topic={topic} row={row} largest={largest} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function PartitionLine({ topic, row, largest }: { topic: string; row: PartitionRow; largest: bigint }) {
  const messages = `/topics/${encodeURIComponent(topic)}/messages?from=earliest&partition=${row.partition}`;
  const state = stateOf(row);
  return (
    <tr data-partition={row.partition}>
      <td className="num" data-label="Partition">
        <Link href={messages} title="See its messages">
          {row.partition}
        </Link>
      </td>
      <td className="rail-cell" data-label="">
        <OffsetRail row={row} largestCount={largest} />
        {state && (
          <Chip tone={state.tone} title={state.title}>
            {state.label}
          </Chip>
        )}
      </td>
      <td className="num" data-label="Log start">
        <Offset value={row.log_start_offset} />
      </td>
      <td className="num strong" data-label="HW" data-testid={`hw-${row.partition}`}>
        <Offset value={row.high_watermark} />
      </td>
      <td className="num" data-label="Size">
        {row.size_bytes === null ? <Unknown /> : formatBytes(row.size_bytes)}
      </td>
      <td className="num" data-label="Leader" data-testid={`leader-${row.partition}`}>
        {row.leader ?? <Chip tone="bad">none</Chip>}
      </td>
      <td className="num" data-label="Epoch">
        {row.leader_epoch}
      </td>
      <td data-label="Replicas">
        <ReplicaSets row={row} />
      </td>
    </tr>
  );
}

const Offset = ({ value }: { value: Int64Text | null }) => (value === null ? <Unknown /> : formatCount(value));

function Unknown() {
  return (
    <span className="muted" title="Comes with the broker's next telemetry">
      –
    </span>
  );
}

function ReplicaSets({ row }: { row: PartitionRow }) {
  const inSync = row.replicas.filter((replica) => replica.in_sync);
  const out = row.replicas.filter((replica) => !replica.in_sync);
  return (
    <span className="replicas">
      {inSync.length > 0 && <ReplicaSet name="ISR" replicas={inSync} row={row} />}
      {out.length > 0 && <ReplicaSet name="OSR" replicas={out} row={row} />}
    </span>
  );
}

const SET_TITLES = {
  ISR: "In-sync replicas: what is acknowledged is on each of these",
  OSR: "Out-of-sync replicas: they do not count for writes",
};

function ReplicaSet({ name, replicas, row }: { name: "ISR" | "OSR"; replicas: Replica[]; row: PartitionRow }) {
  return (
    <span className="replica-set" data-set={name}>
      <abbr title={SET_TITLES[name]}>{name}</abbr>
      {replicas.map((replica) => (
        <ReplicaChip key={replica.broker} replica={replica} row={row} />
      ))}
    </span>
  );
}

function ReplicaChip({ replica, row }: { replica: Replica; row: PartitionRow }) {
  const behind = replica.log_end_offset === null ? null : logEnd(row) - BigInt(replica.log_end_offset);
  const isBehind = behind !== null && behind > 0n;
  return (
    <Chip tone={toneOf(replica, row)} title={describeReplica(replica, row, behind)}>
      <b className={replica.broker === row.leader ? "replica-leader" : ""}>{replica.broker}</b>
      {replica.log_end_offset !== null && <span className="replica-end">{formatCount(replica.log_end_offset)}</span>}
      {isBehind && <span>−{formatCount(behind)}</span>}
    </Chip>
  );
}

function toneOf(replica: Replica, row: PartitionRow): ChipTone {
  if (replica.in_sync) return "ok";
  return row.adding.includes(replica.broker) ? "accent" : "bad";
}

function describeReplica(replica: Replica, row: PartitionRow, behind: bigint | null): string {
  const role = replica.broker === row.leader ? "leads" : replica.in_sync ? "in sync" : "out of sync";
  const notes = [
    row.elr.includes(replica.broker) && "may lead without loss",
    row.adding.includes(replica.broker) && "being added",
    row.removing.includes(replica.broker) && "leaves when the move is done",
  ].filter(Boolean);
  const end =
    behind === null
      ? "log end not told"
      : behind > 0n
        ? `${formatCount(behind)} records behind the leader`
        : "has everything that the leader has";
  return `Broker ${replica.broker} ${role}; ${[end, ...notes].join("; ")}`;
}
