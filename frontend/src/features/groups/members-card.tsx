import type { GroupMember, GroupPage } from "../../api/types";
import { Chip } from "../../components/controls";
import type { MemberColors } from "./member-colors";
import { memberName, ownedText } from "./words";

export function MembersCard({ group, colors }: { group: GroupPage; colors: MemberColors }) {
  const hidden = (group.member_count ?? 0) - group.members.length;
  return (
    <section className="card members-card" aria-label="Members">
      <div className="card-head">
        <h2>Who owns what</h2>
        <span className="muted">{countText(group.members.length)}</span>
      </div>
      {group.members.length === 0 ? (
        <p className="muted members-empty">Nobody is in the group: its offsets can be reset.</p>
      ) : (
        <>
          <Shares group={group} colors={colors} />
          <ul className="members">
            {group.members.map((member) => (
              <Member key={member.id} member={member} group={group} color={colors.get(member.id)} />
            ))}
          </ul>
          {hidden > 0 && <p className="muted members-empty">and {hidden} more</p>}
        </>
      )}
    </section>
  );
}

const countText = (count: number): string => `${count} ${count === 1 ? "member" : "members"}`;

/** Each partition a square in its owner's colour: an uneven share shows at a glance. */
function Shares({ group, colors }: { group: GroupPage; colors: MemberColors }) {
  return (
    <div className="shares" role="img" aria-label="Partitions by owner">
      {group.partitions.map((row) => {
        const color = row.owner === null ? undefined : colors.get(row.owner);
        const owner = group.members.find((member) => member.id === row.owner);
        return (
          <span
            key={`${row.topic}-${row.partition}`}
            className={`share owner-${color ?? "none"}`}
            title={`${row.topic}-${row.partition}: ${owner ? memberName(owner) : "no owner"}`}
          />
        );
      })}
    </div>
  );
}

interface MemberProps {
  member: GroupMember;
  group: GroupPage;
  color: number | undefined;
}

function Member({ member, group, color }: MemberProps) {
  return (
    <li data-member={member.id}>
      <span className={`owner-dot owner-${color ?? "none"}`} aria-hidden="true" />
      <div>
        <strong>{memberName(member)}</strong> <span className="muted">on {member.host}</span>{" "}
        {member.instance_id !== null && (
          <Chip tone="quiet" title="It comes back under this name without a rebalance">
            static
          </Chip>
        )}{" "}
        {group.leader === member.id && (
          <Chip tone="quiet" title="It works out who gets which partition">
            leader
          </Chip>
        )}
        <p className="muted member-owned">{ownedText(member)}</p>
        <p className="member-id" title="Member id">
          {member.id}
        </p>
      </div>
    </li>
  );
}
