import { type SyntheticEvent, useState } from "react";
import { useChangeTopic } from "../../api/topics";
import { useTenant } from "../../api/session";
import type { Topic } from "../../api/types";
import { Button, Chip } from "../../components/controls";
import { toastError, toastOk } from "../../components/toast";
import { configRows, type ConfigRow } from "./config-rows";

export function ConfigTab({ topic }: { topic: Topic }) {
  const allowed = useTenant().data?.policy.allowed_configs ?? null;
  return (
    <section className="card" aria-label="Configuration">
      <div className="table-wrap">
        <table className="table config-table">
          <thead>
            <tr>
              <th>Setting</th>
              <th>Value</th>
              <th>
                <span className="visually-hidden">Change</span>
              </th>
            </tr>
          </thead>
          <tbody>
            <PartitionCountRow topic={topic} />
            {configRows(topic.configs, allowed).map((row) => (
              <ConfigLine key={row.name} topic={topic.name} row={row} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function PartitionCountRow({ topic }: { topic: Topic }) {
  const change = useChangeTopic(topic.name);
  const row: ConfigRow = {
    name: "partitions",
    value: String(topic.partitions),
    meaning: "",
    isSet: false,
    doc: "Can be raised, never lowered; keys may then map to other partitions.",
    isEditable: true,
  };
  const save = (value: string, done: () => void): void =>
    change.mutate({ partitions: Number(value) }, { onSuccess: done, onError: toastError });
  return <EditableLine row={row} isSaving={change.isPending} onSave={save} />;
}

function ConfigLine({ topic, row }: { topic: string; row: ConfigRow }) {
  const change = useChangeTopic(topic);
  const save = (value: string | null, done: () => void): void =>
    change.mutate({ configs: { [row.name]: value } }, { onSuccess: done, onError: toastError });
  return <EditableLine row={row} isSaving={change.isPending} onSave={save} onUnset={(done) => save(null, done)} />;
}

interface LineProps {
  row: ConfigRow;
  isSaving: boolean;
  onSave: (value: string, done: () => void) => void;
  onUnset?: (done: () => void) => void;
}

function EditableLine({ row, isSaving, onSave, onUnset }: LineProps) {
  const [draft, setDraft] = useState<string | null>(null);
  const unset = (): void =>
    onUnset?.(() => {
      setDraft(null);
      toastOk(`${row.name} is back at its default.`);
    });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    if (draft === null) return;
    onSave(draft.trim(), () => {
      setDraft(null);
      toastOk(`${row.name} is now ${draft.trim()}.`);
    });
  };
  return (
    <tr>
      <td>
        <code>{row.name}</code>
        <p className="muted config-doc">{row.doc}</p>
      </td>
      <td>
        {draft === null ? (
          <ConfigValue row={row} />
        ) : (
          <form id={`edit-${row.name}`} onSubmit={submit}>
            <input
              className="input mono"
              aria-label={`New value of ${row.name}`}
              autoFocus
              value={draft}
              onChange={(event) => setDraft(event.target.value)}
              onKeyDown={(event) => event.key === "Escape" && setDraft(null)}
            />
          </form>
        )}
      </td>
      <td className="config-actions">
        {draft === null ? (
          // Keys, because a button reused in place would turn into the submit button while its own click is under way.
          <button
            key="change"
            type="button"
            className="link-button"
            disabled={!row.isEditable}
            title={row.isEditable ? "" : "Your tenant's policy does not let this be set"}
            onClick={() => setDraft(row.value)}
          >
            Change<span className="visually-hidden"> {row.name}</span>
          </button>
        ) : (
          <>
            <button
              key="save"
              type="submit"
              form={`edit-${row.name}`}
              className="button button-primary button-small"
              disabled={isSaving}
            >
              Save
            </button>
            {row.isSet && onUnset && (
              <Button onClick={unset} disabled={isSaving}>
                Use default
              </Button>
            )}
            <Button onClick={() => setDraft(null)}>Cancel</Button>
          </>
        )}
      </td>
    </tr>
  );
}

function ConfigValue({ row }: { row: ConfigRow }) {
  return (
    <span className="config-value">
      <code>{row.value || "–"}</code>
      {row.meaning && <span className="muted">{row.meaning}</span>}
      {row.isSet ? <Chip tone="accent">set here</Chip> : row.name !== "partitions" && <Chip tone="quiet">default</Chip>}
    </span>
  );
}
