import type { Cluster, TroubledPartition } from "../../api/types";
import { CheckIcon } from "../../components/icons";
import { TroubleChip } from "../../components/topic-status";
import { brokersText, placeText } from "./words";

export function TroubleCard({ cluster }: { cluster: Cluster }) {
  const { leaderless, under_min_isr, under_replicated } = cluster.partitions;
  const count = leaderless + under_min_isr + under_replicated;
  return (
    <section className="card cluster-card" aria-label="Partitions in trouble">
      <div className="card-head">
        <h2>Partitions in trouble</h2>
        {count > cluster.troubled.length && (
          <span className="muted">
            the worst {cluster.troubled.length} of {count}
          </span>
        )}
      </div>
      {count === 0 ? (
        <p className="cluster-well muted">
          <CheckIcon /> Every partition has a leader, and all its replicas are in sync.
        </p>
      ) : (
        <TroubleTable troubled={cluster.troubled} />
      )}
    </section>
  );
}

function TroubleTable({ troubled }: { troubled: TroubledPartition[] }) {
  return (
    <div className="table-wrap">
      <table className="table stacked-table">
        <thead>
          <tr>
            <th>Partition</th>
            <th>Trouble</th>
            <th className="num">Leader</th>
            <th className="num">Epoch</th>
            <th title="In-sync replicas">ISR</th>
            <th title="Out-of-sync replicas">OSR</th>
            <th title="Eligible leader replicas: out of sync, yet they hold all that was committed">ELR</th>
            <th className="num">Min ISR</th>
          </tr>
        </thead>
        <tbody>
          {troubled.map((row) => (
            <TroubleLine key={placeText(row)} row={row} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function TroubleLine({ row }: { row: TroubledPartition }) {
  return (
    <tr>
      <td data-label="Partition" className="place">
        {placeText(row)}
      </td>
      <td data-label="Trouble">
        <TroubleChip trouble={row.trouble} />
      </td>
      <td data-label="Leader" className="num">
        {row.leader ?? "none"}
      </td>
      <td data-label="Epoch" className="num">
        {row.leader_epoch}
      </td>
      <td data-label="ISR">{brokersText(row.isr)}</td>
      <td data-label="OSR">{brokersText(row.osr)}</td>
      <td data-label="ELR">{brokersText(row.elr)}</td>
      <td data-label="Min ISR" className="num">
        {row.min_insync}
      </td>
    </tr>
  );
}
