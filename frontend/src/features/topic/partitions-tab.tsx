import { formatBytes, formatCount } from "../../api/int64";
import type { PartitionRow, Replica } from "../../api/types";
import { Chip } from "../../components/controls";
import { Link } from "../../components/router";
import { OffsetRail } from "./offset-rail";
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
              <th className="num" title="Log end offset: the next record gets this one">
                LEO
              </th>
              <th className="num">Size</th>
              <th className="num">Leader</th>
              <th className="num" title="Leader epoch: grows with every change of leader">
                Epoch
              </th>
              <th>Replicas</th>
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
  return (
    <tr data-partition={row.partition}>
      <td className="num" data-label="Partition">
        <Link href={messages} title="See its messages">
          {row.partition}
        </Link>
      </td>
      <td className="rail-cell" data-label="">
        <OffsetRail row={row} largestCount={largest} />
      </td>
      <td className="num" data-label="Log start">
        {formatCount(row.log_start_offset)}
      </td>
      <td className="num strong" data-label="HW" data-testid={`hw-${row.partition}`}>
        {formatCount(row.high_watermark)}
      </td>
      <td className="num" data-label="LEO">
        {row.log_end_offset === null ? <Unknown /> : formatCount(row.log_end_offset)}
      </td>
      <td className="num" data-label="Size">
        {row.size_bytes === null ? <Unknown /> : formatBytes(row.size_bytes)}
      </td>
      <td className="num" data-label="Leader">
        {row.leader < 0 ? <Chip tone="bad">none</Chip> : row.leader}
      </td>
      <td className="num" data-label="Epoch">
        {row.leader_epoch}
      </td>
      <td data-label="Replicas">
        <span className="replicas">
          {row.replicas.map((replica) => (
            <ReplicaChip key={replica.broker} replica={replica} row={row} />
          ))}
        </span>
      </td>
    </tr>
  );
}

function Unknown() {
  return (
    <span className="muted" title="Comes with the broker's next telemetry">
      –
    </span>
  );
}

function ReplicaChip({ replica, row }: { replica: Replica; row: PartitionRow }) {
  const behind = replica.log_end_offset === null ? null : logEnd(row) - BigInt(replica.log_end_offset);
  const lag = behind === null || behind <= 0n ? "" : ` −${formatCount(behind)}`;
  const title = replica.in_sync ? "In the in-sync set (ISR)" : "Out of sync (OSR): it does not count for writes";
  return (
    <Chip tone={replica.in_sync ? "ok" : "bad"} title={title}>
      {replica.broker} {replica.in_sync ? "ISR" : "OSR"}
      {lag}
    </Chip>
  );
}
