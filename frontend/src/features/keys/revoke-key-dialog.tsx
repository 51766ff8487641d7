import { useRevokeApiKey } from "../../api/keys";
import type { ApiKey } from "../../api/types";
import { Button } from "../../components/controls";
import { Dialog } from "../../components/dialog";
import { toastError, toastOk } from "../../components/toast";

export function RevokeKeyDialog({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const revoke = useRevokeApiKey();
  const confirm = (): void =>
    revoke.mutate(apiKey.id, {
      onError: toastError,
      onSuccess: () => {
        toastOk(`Key “${apiKey.name}” is revoked.`);
        onClose();
      },
    });
  return (
    <Dialog title={`Revoke “${apiKey.name}”?`} onClose={onClose}>
      <div className="form">
        <p>
          Clients that use <code>{apiKey.id}</code> cannot sign in any more. This cannot be undone.
        </p>
        <div className="form-actions">
          <Button data-autofocus onClick={onClose}>
            Keep it
          </Button>
          <Button tone="danger" onClick={confirm} disabled={revoke.isPending}>
            {revoke.isPending ? "Revoking…" : "Revoke key"}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
