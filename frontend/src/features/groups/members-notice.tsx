export function MembersNotice({ count }: { count: number }) {
  if (count === 0) return null;
  return (
    <div className="notice notice-warn" role="alert">
      <div>
        <strong>
          {count} {count === 1 ? "member is" : "members are"} in the group.
        </strong>
        <p>Stop them first: their next commit would undo this. You can look, and do it when they are gone.</p>
      </div>
    </div>
  );
}
