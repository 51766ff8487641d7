import { useCancelMoves } from "../../api/cluster";
import { formatBytes } from "../../api/int64";
import type { MovingPartition } from "../../api/types";
import { Button } from "../../components/controls";
import { toastError, toastOk } from "../../components/toast";
import { brokersText, placeText } from "./words";

export function MovesCard({ moves, count }: { moves: MovingPartition[]; count: number }) {
  const cancel = useCancelMoves();
  const run = (): void =>
    cancel.mutate(undefined, {
      onError: toastError,
      onSuccess: ({ cancelled_count }) => toastOk(`${cancelled_count} moves are cancelled.`),
    });
  return (
    <section className="card cluster-card" aria-label="Moves">
      <div className="card-head">
        <h2>
          {count} {count === 1 ? "partition is" : "partitions are"} moving
        </h2>
        <Button tone="danger" onClick={run} disabled={cancel.isPending}>
          {cancel.isPending ? "Cancelling…" : "Cancel all"}
        </Button>
      </div>
      <div className="table-wrap">
        <table className="table stacked-table">
          <thead>
            <tr>
              <th>Partition</th>
              <th>Progress</th>
              <th className="num">Left</th>
              <th>Brings</th>
              <th>Takes</th>
            </tr>
          </thead>
          <tbody>
            {moves.map((move) => (
              <MoveLine key={placeText(move)} move={move} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function MoveLine({ move }: { move: MovingPartition }) {
  const percent = Math.floor(move.progress * 100);
  return (
    <tr>
      <td data-label="Partition" className="place">
        {placeText(move)}
      </td>
      <td data-label="Progress" className="progress-cell">
        <span
          className="meter-track"
          role="progressbar"
          aria-valuenow={percent}
          aria-label={`Move of ${placeText(move)}`}
        >
          <span className="meter-fill" style={{ width: `${percent}%` }} />
        </span>
        <span>{percent} %</span>
      </td>
      <td data-label="Left" className="num">
        {move.bytes_left === null ? "–" : formatBytes(move.bytes_left)}
      </td>
      <td data-label="Brings">{brokersText(move.adding)}</td>
      <td data-label="Takes">{brokersText(move.removing)}</td>
    </tr>
  );
}
