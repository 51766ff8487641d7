// The lag of the last minutes, as an area: whether it grows is seen before any number is read.
import { formatCompact, formatCount } from "../../api/int64";
import type { GroupPage, LagPoint } from "../../api/types";
import { secondsText } from "../../components/lag";
import { clockTime } from "../../components/time";

const WIDTH = 1000;
const HEIGHT = 120;

export function LagChart({ group, isPushed }: { group: GroupPage; isPushed: boolean }) {
  const points = group.lag_history;
  return (
    <section className="card lag-card" aria-label="Lag over time">
      <div className="card-head">
        <h2>Lag over time</h2>
        <span className="muted">{spanText(points, isPushed)}</span>
      </div>
      {points.length < 2 ? (
        <p className="muted lag-wait">The first minutes are being collected: a point every 5 seconds.</p>
      ) : (
        <Picture points={points} />
      )}
    </section>
  );
}

function spanText(points: readonly LagPoint[], isPushed: boolean): string {
  const first = points[0];
  const last = points.at(-1);
  if (!first || !last || first === last) return "";
  const span = `the last ${secondsText((last.at_ms - first.at_ms) / 1_000)}`;
  return isPushed ? `${span}, live` : span;
}

function Picture({ points }: { points: readonly LagPoint[] }) {
  const peak = Math.max(...points.map((point) => point.records), 1);
  const firstMs = points[0]?.at_ms ?? 0;
  const spanMs = Math.max(1, (points.at(-1)?.at_ms ?? 0) - firstMs);
  const x = (point: LagPoint): number => ((point.at_ms - firstMs) / spanMs) * WIDTH;
  const y = (point: LagPoint): number => HEIGHT - (point.records / peak) * (HEIGHT - 6);
  const line = points.map((point) => `${x(point).toFixed(1)},${y(point).toFixed(1)}`).join(" ");
  const last = points.at(-1);
  const label = `Lag between ${clockTime(firstMs)} and ${clockTime(last?.at_ms ?? 0)}, at most ${formatCount(peak)} records`;
  return (
    <div className="lag-picture">
      <span className="lag-peak muted">{formatCompact(peak)}</span>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
        <polygon className="lag-area" points={`0,${HEIGHT} ${line} ${WIDTH},${HEIGHT}`} />
        <polyline className="lag-line" points={line} vectorEffect="non-scaling-stroke" />
      </svg>
      <span className="lag-axis muted">
        <span>{shortTime(firstMs)}</span>
        <span>{last && shortTime(last.at_ms)}</span>
      </span>
    </div>
  );
}

const shortTime = (atMs: number): string => clockTime(atMs).slice(0, 8);
