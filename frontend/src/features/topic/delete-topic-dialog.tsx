import { type SyntheticEvent, useState } from "react";
import { formatCount } from "../../api/int64";
import { useDeleteTopic } from "../../api/topics";
import type { PartitionRow, Topic } from "../../api/types";
import { Button } from "../../components/controls";
import { Dialog } from "../../components/dialog";
import { navigate } from "../../components/router";
import { toastError, toastOk } from "../../components/toast";
import { TypedName } from "../../components/typed-name";
import { recordsIn } from "./rail";

interface DeleteProps {
  topic: Topic;
  rows: PartitionRow[];
  onClose: () => void;
}

export function DeleteTopicDialog({ topic, rows, onClose }: DeleteProps) {
  const [typed, setTyped] = useState("");
  const remove = useDeleteTopic(topic.name);
  const isConfirmed = typed === topic.name;
  const recordCount = rows.reduce((sum, row) => sum + recordsIn(row), 0n);
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    if (!isConfirmed || remove.isPending) return;
    remove.mutate(undefined, {
      onError: toastError,
      onSuccess: () => {
        toastOk(`Topic ${topic.name} is deleted.`);
        onClose();
        navigate("/topics");
      },
    });
  };
  return (
    <Dialog title={`Delete ${topic.name}?`} onClose={onClose}>
      <form className="form" onSubmit={submit}>
        <div className="notice notice-warn">
          <div>
            <strong>
              {formatCount(recordCount)} {recordCount === 1n ? "record" : "records"} in {topic.partitions}{" "}
              {topic.partitions === 1 ? "partition" : "partitions"} will be gone.
            </strong>
            <p>This cannot be undone. Clients that read or write this topic get an error.</p>
          </div>
        </div>
        <TypedName name={topic.name} typed={typed} onTyped={setTyped} hasFocus />
        <div className="form-actions">
          <Button onClick={onClose}>Keep it</Button>
          <Button tone="danger" type="submit" disabled={!isConfirmed || remove.isPending}>
            {remove.isPending ? "Deleting…" : "Delete topic"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
