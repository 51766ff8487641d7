// Every partition as a rail: where the log begins, what is committed, where the owner reads, where the log ends.
import { formatCount } from "../../api/int64";
import type { GroupMember, GroupPage, GroupPartition } from "../../api/types";
import { GroupStatusChip } from "../../components/group-status";
import { lagText, messageHref, recordsText, secondsText } from "../../components/lag";
import { Link } from "../../components/router";
import { Sparkline } from "../../components/sparkline";
import { Ago } from "../../components/time";
import { groupRailOf } from "./group-rail";
import type { MemberColors } from "./member-colors";
import { commitRateText, describeRail, DOUBTS, heldBackCount, memberName, repeatText } from "./words";

interface RailsProps {
  group: GroupPage;
  colors: MemberColors;
  isPushed: boolean;
}

export function RailsCard({ group, colors, isPushed }: RailsProps) {
  const topics = [...new Set(group.partitions.map((row) => row.topic))];
  return (
    <section className="card rails-card" aria-label="Partitions">
      <div className="rail-legend">
        <span>
          <i className="legend-water" /> read and committed
        </span>
        <span>
          <i className="legend-sent" /> sent to its owner, not committed
        </span>
        <span>
          <i className="legend-unread" /> not read
        </span>
        <span>
          <i className="legend-committed" /> committed
        </span>
        <span>
          <i className="legend-position" /> position
        </span>
        {group.partitions.some((row) => heldBackCount(row) > 0n) && (
          <span>
            <i className="legend-held" /> in an open transaction
          </span>
        )}
        <span className="rail-legend-end">{isPushed ? "Live, once a second" : "Refreshed every 2 s"}</span>
      </div>
      {topics.length === 0 && <p className="muted rails-empty">It has no offsets, and nobody owns a partition.</p>}
      {topics.map((topic) => (
        <TopicRails
          key={topic}
          topic={topic}
          rows={group.partitions.filter((row) => row.topic === topic)}
          members={group.members}
          colors={colors}
        />
      ))}
    </section>
  );
}

interface TopicProps {
  topic: string;
  rows: GroupPartition[];
  members: GroupMember[];
  colors: MemberColors;
}

function TopicRails({ topic, rows, members, colors }: TopicProps) {
  const lag = rows.reduce((sum, row) => sum + BigInt(row.lag ?? 0), 0n);
  return (
    <div className="topic-rails">
      <h3>
        <Link href={`/topics/${encodeURIComponent(topic)}/groups`}>{topic}</Link>
        <span className="muted">
          {rows.length} {rows.length === 1 ? "partition" : "partitions"}, {formatCount(lag)} not read
        </span>
      </h3>
      {rows.map((row) => (
        <RailLine
          key={row.partition}
          row={row}
          owner={members.find((member) => member.id === row.owner)}
          color={row.owner === null ? undefined : colors.get(row.owner)}
        />
      ))}
    </div>
  );
}

interface LineProps {
  row: GroupPartition;
  owner: GroupMember | undefined;
  color: number | undefined;
}

function RailLine({ row, owner, color }: LineProps) {
  const repeat = repeatText(row);
  return (
    <div className="rail-line-row" data-place={`${row.topic}-${row.partition}`}>
      <span className="rail-number">
        <span className={`owner-dot owner-${color ?? "none"}`} aria-hidden="true" />
        {row.partition}
      </span>
      <div className="rail-picture">
        <Rail row={row} />
        <Numbers row={row} />
      </div>
      <span className="rail-lag">
        <strong data-testid={`lag-${row.topic}-${row.partition}`}>{lagText(row.lag)}</strong>
        <span className="muted">{row.lag === null ? "lag unknown" : `behind ${secondsText(row.lag_seconds)}`}</span>
      </span>
      <Sparkline values={row.lag_points} label={`Lag of partition ${row.partition} over the last minutes`} />
      <span className="rail-notes">
        {row.status !== "ok" && <GroupStatusChip status={row.status} words={row.words} />}
        <span className="muted" title={owner ? `${owner.id} on ${owner.host}` : undefined}>
          {owner ? memberName(owner) : "no owner"}
        </span>
        {repeat && (
          <span className="muted rail-repeat" title={repeat}>
            {formatCount(row.repeat_count ?? 0)} would repeat
          </span>
        )}
      </span>
    </div>
  );
}

const percent = (fraction: number): string => `${(fraction * 100).toFixed(2)}%`;

function Rail({ row }: { row: GroupPartition }) {
  const rail = groupRailOf(row);
  const text = describeRail(row);
  if (rail.isEmpty) return <div className="grail grail-empty" role="img" aria-label={text} title={text} />;
  const sentTo = rail.position ?? rail.committed ?? 0;
  return (
    <div className="grail" role="img" aria-label={text} title={text}>
      <span className="grail-sent" style={{ width: percent(sentTo) }} />
      <span className="grail-read" style={{ width: percent(rail.committed ?? 0) }} />
      {rail.stable !== null && <span className="grail-held" style={{ left: percent(rail.stable) }} />}
      {rail.breakAt !== null && <span className="rail-break" style={{ left: percent(rail.breakAt) }} />}
      {rail.committed !== null && <span className="grail-committed" style={{ left: percent(rail.committed) }} />}
      {rail.position !== null && <span className="grail-position" style={{ left: percent(rail.position) }} />}
    </div>
  );
}

function Numbers({ row }: { row: GroupPartition }) {
  const rate = commitRateText(row.commit_rate);
  return (
    <span className="rail-numbers muted">
      <span title="Log start: nothing older is kept">
        {row.log_start_offset === null ? "–" : formatCount(row.log_start_offset)}
      </span>
      <span>
        {row.committed === null ? (
          "nothing committed"
        ) : (
          <>
            committed{" "}
            <Link href={messageHref(row.topic, row.partition, row.committed)} title="See the next message">
              {formatCount(row.committed)}
            </Link>
            {row.commit_ms !== null && (
              <>
                {" · "}
                <Ago at={row.commit_ms} />
              </>
            )}
            {rate && <span title="Over the last five minutes"> · {rate}</span>}
            {row.metadata && <em title="The commit's metadata"> “{row.metadata}”</em>}
          </>
        )}
      </span>
      <span title={row.position_doubt ? `Not known: ${DOUBTS[row.position_doubt]}` : "Where its owner's fetches are"}>
        position {row.position === null ? "unknown" : formatCount(row.position)}
      </span>
      <span title={`High watermark. Last stable offset ${row.last_stable_offset ?? "unknown"}`}>
        HW {row.high_watermark === null ? "–" : formatCount(row.high_watermark)}
      </span>
      <HeldBack row={row} />
    </span>
  );
}

function HeldBack({ row }: { row: GroupPartition }) {
  const count = heldBackCount(row);
  if (count === 0n || row.last_stable_offset === null) return null;
  return (
    <span
      className="rail-held"
      title="The last stable offset: read_committed readers get nothing from here on until the transaction ends"
    >
      LSO {formatCount(row.last_stable_offset)}: an open transaction holds {recordsText(count)} back from read_committed
      readers
    </span>
  );
}
