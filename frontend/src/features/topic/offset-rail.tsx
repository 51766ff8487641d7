import { formatCount, type Int64Text } from "../../api/int64";
import type { PartitionRow } from "../../api/types";
import { railOf } from "./rail";

const percent = (fraction: number): string => `${(fraction * 100).toFixed(2)}%`;

export function OffsetRail({ row, largestCount }: { row: PartitionRow; largestCount: bigint }) {
  const rail = railOf(row, largestCount);
  return (
    <div className="rail" role="img" aria-label={describe(row)} title={describe(row)}>
      <div className="rail-line" style={{ width: percent(rail.length) }}>
        {!rail.isEmpty && <span className="rail-water" style={{ width: percent(rail.highWatermark) }} />}
        {!rail.isEmpty && <span className="rail-mark" style={{ left: percent(rail.highWatermark) }} />}
        {rail.breakAt !== null && <span className="rail-break" style={{ left: percent(rail.breakAt * 0.92) }} />}
        {rail.ticks.map((tick) => (
          <span
            key={tick.broker}
            className={`rail-tick ${tick.isLeader ? "rail-leader" : ""} ${tick.isInSync ? "" : "rail-out"}`}
            style={{ left: percent(tick.position) }}
          />
        ))}
      </div>
    </div>
  );
}

function describe(row: PartitionRow): string {
  const replicas = row.replicas.map((replica) =>
    replica.log_end_offset === null
      ? `broker ${replica.broker} unknown`
      : `broker ${replica.broker} at ${formatCount(replica.log_end_offset)}${replica.in_sync ? "" : ", out of sync"}`,
  );
  return (
    `Log start ${textOf(row.log_start_offset)}, high watermark ${textOf(row.high_watermark)}, ` +
    `log end ${textOf(row.log_end_offset)}. ${replicas.join("; ")}`
  );
}

const textOf = (offset: Int64Text | null): string => (offset === null ? "unknown" : formatCount(offset));
