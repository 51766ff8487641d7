import { useEffect, useState } from "react";
import { useApiKeys } from "../../api/keys";
import { useTenant, useWriteAccess } from "../../api/session";
import type { ApiKey, NewApiKey } from "../../api/types";
import { Button, Chip, CopyButton, Failure, Skeleton } from "../../components/controls";
import { PlusIcon } from "../../components/icons";
import { Ago } from "../../components/time";
import { CreateKeyDialog } from "./create-key-dialog";
import { NewSecretDialog } from "./new-secret-dialog";
import { RevokeKeyDialog } from "./revoke-key-dialog";

export function KeysPage() {
  const keys = useApiKeys();
  const tenant = useTenant();
  const writeAccess = useWriteAccess();
  const [isCreating, setIsCreating] = useState(false);
  const [created, setCreated] = useState<NewApiKey | null>(null);
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  useEffect(() => {
    document.title = "API keys · Highwater";
  }, []);
  const rows = keys.data?.data;
  return (
    <>
      <div className="page-head">
        <h1>API keys</h1>
        <Button tone="primary" onClick={() => setIsCreating(true)} {...writeAccess}>
          <PlusIcon />
          Create key
        </Button>
      </div>
      <p className="muted keys-intro">
        A key signs a client in, over the Kafka protocol and over REST, as this tenant.
        {tenant.data && (
          <>
            {" "}
            Kafka clients connect to <code>{tenant.data.kafka_bootstrap}</code>.
          </>
        )}
      </p>
      {keys.error && !rows ? (
        <Failure error={keys.error} onRetry={() => void keys.refetch()} />
      ) : (
        <div className="card">{rows ? <KeysTable keys={rows} onRevoke={setRevoking} /> : <Skeleton rows={4} />}</div>
      )}
      {isCreating && (
        <CreateKeyDialog
          onClose={() => setIsCreating(false)}
          onCreated={(key) => {
            setIsCreating(false);
            setCreated(key);
          }}
        />
      )}
      {created && (
        <NewSecretDialog apiKey={created} bootstrap={tenant.data?.kafka_bootstrap} onClose={() => setCreated(null)} />
      )}
      {revoking && <RevokeKeyDialog apiKey={revoking} onClose={() => setRevoking(null)} />}
    </>
  );
}

function KeysTable({ keys, onRevoke }: { keys: ApiKey[]; onRevoke: (key: ApiKey) => void }) {
  if (keys.length === 0)
    return <p className="table-empty muted">No keys yet. Create one for each program that connects.</p>;
  return (
    <table className="table keys-table">
      <thead>
        <tr>
          <th>Name</th>
          <th>Key id</th>
          <th>Created</th>
          <th>Last used</th>
          <th>Status</th>
          <th>
            <span className="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {keys.map((key) => (
          <KeyRow key={key.id} apiKey={key} onRevoke={onRevoke} />
        ))}
      </tbody>
    </table>
  );
}

const isActive = (key: ApiKey): boolean => key.status === "active" || key.status === "ready";

function KeyRow({ apiKey, onRevoke }: { apiKey: ApiKey; onRevoke: (key: ApiKey) => void }) {
  const tone = isActive(apiKey) ? "ok" : apiKey.status === "revoked" ? "quiet" : "warn";
  return (
    <tr>
      <td className="key-name">{apiKey.name}</td>
      <td data-label="Key id">
        <span className="key-id">
          <code>{apiKey.id}</code>
          <CopyButton text={apiKey.id} />
        </span>
      </td>
      <td data-label="Created">
        <span>
          <Ago at={apiKey.created_at} />
          {apiKey.created_by && <span className="muted key-by"> by {apiKey.created_by}</span>}
        </span>
      </td>
      <td data-label="Last used">
        {apiKey.last_used_at ? <Ago at={apiKey.last_used_at} /> : <span className="muted">never</span>}
      </td>
      <td data-label="Status">
        <Chip tone={tone}>{apiKey.status.slice(0, 1).toUpperCase() + apiKey.status.slice(1)}</Chip>
      </td>
      <td className="key-actions">
        {apiKey.status !== "revoked" && (
          <button
            type="button"
            className="button button-danger button-small"
            aria-label={`Revoke ${apiKey.name}`}
            onClick={() => onRevoke(apiKey)}
          >
            Revoke
          </button>
        )}
      </td>
    </tr>
  );
}
