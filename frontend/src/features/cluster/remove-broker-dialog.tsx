import { useRemoveBroker } from "../../api/cluster";
import type { BrokerRow } from "../../api/types";
import { Button } from "../../components/controls";
import { Dialog } from "../../components/dialog";
import { toastError, toastOk } from "../../components/toast";

export function RemoveBrokerDialog({ broker, onClose }: { broker: BrokerRow; onClose: () => void }) {
  const remove = useRemoveBroker();
  const confirm = (): void =>
    remove.mutate(broker.id, {
      onError: toastError,
      onSuccess: () => {
        toastOk(`Broker ${broker.id} is removed.`);
        onClose();
      },
    });
  return (
    <Dialog title={`Remove broker ${broker.id}?`} onClose={onClose}>
      <div className="form">
        <p>
          The cluster forgets it: it no longer votes, and nothing is placed on it. It must hold no replicas; drain it
          first. Its files stay where they are.
        </p>
        <div className="form-actions">
          <Button data-autofocus onClick={onClose}>
            Keep it
          </Button>
          <Button tone="danger" onClick={confirm} disabled={remove.isPending}>
            {remove.isPending ? "Removing…" : "Remove broker"}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
