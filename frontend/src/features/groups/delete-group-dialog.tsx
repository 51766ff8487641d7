import { type SyntheticEvent, useState } from "react";
import { useDeleteGroup } from "../../api/groups";
import type { GroupPage } from "../../api/types";
import { Button } from "../../components/controls";
import { Dialog } from "../../components/dialog";
import { navigate } from "../../components/router";
import { toastError, toastOk } from "../../components/toast";
import { TypedName } from "../../components/typed-name";
import { MembersNotice } from "./members-notice";

export function DeleteGroupDialog({ group, onClose }: { group: GroupPage; onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const remove = useDeleteGroup(group.name);
  const isConfirmed = typed === group.name && !group.member_count;
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    if (!isConfirmed || remove.isPending) return;
    remove.mutate(undefined, {
      onError: toastError,
      onSuccess: () => {
        toastOk(`Group ${group.name} is deleted.`);
        onClose();
        navigate("/groups");
      },
    });
  };
  return (
    <Dialog title={`Delete ${group.name}?`} onClose={onClose}>
      <form className="form" onSubmit={submit}>
        <MembersNotice count={group.member_count ?? 0} />
        <p>
          The group and its offsets in {group.partition_count}{" "}
          {group.partition_count === 1 ? "partition" : "partitions"} are forgotten. A member that joins again begins
          where its client’s <code>auto.offset.reset</code> says. The records stay. Export the offsets first if you may
          want them back.
        </p>
        <TypedName name={group.name} typed={typed} onTyped={setTyped} hasFocus />
        <div className="form-actions">
          <Button onClick={onClose}>Keep it</Button>
          <Button tone="danger" type="submit" disabled={!isConfirmed || remove.isPending}>
            {remove.isPending ? "Deleting…" : "Delete group"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
