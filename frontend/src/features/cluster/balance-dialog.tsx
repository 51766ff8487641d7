// Dry run first: what would move and how many bytes; then, and only then, a button that begins exactly that.
import { useState } from "react";
import { useBeginMoves, useMovePlan } from "../../api/cluster";
import { formatBytes } from "../../api/int64";
import type { BrokerRow, MovePlan, MoveWish } from "../../api/types";
import { Button, Failure, Field, Skeleton } from "../../components/controls";
import { Dialog } from "../../components/dialog";
import { toastError, toastOk } from "../../components/toast";
import { brokersText, placeText, throttleBytes } from "./words";

interface DialogProps {
  brokers: BrokerRow[];
  initial: MoveWish;
  onClose: () => void;
}

export function BalanceDialog({ brokers, initial, onClose }: DialogProps) {
  const [wish, setWish] = useState<MoveWish>(initial);
  const leaving = initial.leaving?.[0];
  const title = leaving === undefined ? "Balance the cluster" : `Drain broker ${leaving}`;
  return (
    <Dialog title={title} onClose={onClose} size="wide">
      <div className="form">
        <p className="muted">
          {leaving === undefined
            ? "Evens out replicas and leaders over all live brokers, and moves as little as it can."
            : "Moves every replica that it holds to the other brokers. It goes on serving meanwhile, and can be stopped and removed afterwards."}
        </p>
        <CopiesChoice brokers={brokers} wish={wish} onChange={setWish} />
        <PlanStep key={JSON.stringify(wish)} wish={wish} onClose={onClose} />
      </div>
    </Dialog>
  );
}

function CopiesChoice(props: { brokers: BrokerRow[]; wish: MoveWish; onChange: (wish: MoveWish) => void }) {
  const { leaving } = props.wish;
  const most = props.brokers.filter((broker) => broker.status === "up" && !leaving?.includes(broker.id)).length;
  const choose = (text: string): void => {
    const kept = leaving ? { leaving } : {};
    props.onChange(text ? { ...kept, replication_factor: Number(text) } : kept);
  };
  return (
    <Field label="Copies of each partition">
      {(field) => (
        <select
          {...field}
          className="select"
          data-autofocus
          value={props.wish.replication_factor ?? ""}
          onChange={(event) => choose(event.target.value)}
        >
          <option value="">As each topic has them</option>
          {countsUpTo(most, leaving ? 1 : 2).map((count) => (
            <option key={count} value={count}>
              {leaving ? `At most ${count}` : `Raise topics that have fewer to ${count}`}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

const countsUpTo = (most: number, least: number): number[] =>
  Array.from({ length: most }, (_, index) => index + 1).filter((count) => count >= least);

function PlanStep({ wish, onClose }: { wish: MoveWish; onClose: () => void }) {
  const plan = useMovePlan(wish);
  if (plan.error) return <Failure error={plan.error} onRetry={() => void plan.refetch()} />;
  if (!plan.data) return <Skeleton rows={4} />;
  if (plan.data.move_count === 0) return <NothingToMove onClose={onClose} />;
  return <PlanToBegin wish={wish} plan={plan.data} onClose={onClose} onStale={() => void plan.refetch()} />;
}

function NothingToMove({ onClose }: { onClose: () => void }) {
  return (
    <>
      <p role="status">
        <strong>Nothing has to move.</strong>
      </p>
      <div className="form-actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </>
  );
}

interface BeginProps {
  wish: MoveWish;
  plan: MovePlan;
  onClose: () => void;
  onStale: () => void;
}

function PlanToBegin({ wish, plan, onClose, onStale }: BeginProps) {
  const [throttle, setThrottle] = useState("");
  const begin = useBeginMoves();
  const limit = throttleBytes(throttle);
  const movesText = `${plan.move_count} ${plan.move_count === 1 ? "move" : "moves"}`;
  const submit = (): void => {
    if (limit === null) return;
    const limited = limit === undefined ? {} : { throttle_bytes_per_s: limit };
    begin.mutate(
      { ...wish, plan_id: plan.plan_id, ...limited },
      {
        onError: (error) => {
          toastError(error);
          onStale();
        },
        onSuccess: () => {
          toastOk(`${movesText} begun.`);
          onClose();
        },
      },
    );
  };
  return (
    <>
      <p role="status">
        <strong>
          {movesText}, {formatBytes(plan.size_bytes)} to copy.
        </strong>{" "}
        <span className="muted">Nothing has been moved yet.</span>
      </p>
      <PlanTable plan={plan} />
      <Field
        label="Limit per broker, MiB/s"
        hint="Empty: as fast as disks and network allow"
        error={limit === null ? "This must be a number above 0" : undefined}
      >
        {(field) => (
          <input
            {...field}
            className="input throttle-input"
            inputMode="decimal"
            value={throttle}
            onChange={(event) => setThrottle(event.target.value)}
          />
        )}
      </Field>
      <div className="form-actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button tone="primary" onClick={submit} disabled={begin.isPending || limit === null}>
          {begin.isPending ? "Beginning…" : `Begin ${movesText}`}
        </Button>
      </div>
    </>
  );
}

const SHOWN_MAX = 200;

function PlanTable({ plan }: { plan: MovePlan }) {
  return (
    <div className="plan-box" tabIndex={0} role="region" aria-label="Planned moves">
      <table className="table plan-table">
        <thead>
          <tr>
            <th>Partition</th>
            <th>Replicas now</th>
            <th>Afterwards</th>
            <th className="num">To copy</th>
          </tr>
        </thead>
        <tbody>
          {plan.moves.slice(0, SHOWN_MAX).map((move) => (
            <tr key={placeText(move)}>
              <td className="place">{placeText(move)}</td>
              <td>{brokersText(move.before)}</td>
              <td>
                {move.after.map((broker, index) => (
                  <span key={broker} className={move.before.includes(broker) ? "" : "plan-new"}>
                    {index > 0 && ", "}
                    {broker}
                  </span>
                ))}
              </td>
              <td className="num">{move.size_bytes === "0" ? "–" : formatBytes(move.size_bytes)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {plan.move_count > SHOWN_MAX && <p className="muted plan-more">and {plan.move_count - SHOWN_MAX} more</p>}
    </div>
  );
}
