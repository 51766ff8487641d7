import { type SyntheticEvent, useState } from "react";
import { formatCount } from "../../api/int64";
import { useProduce } from "../../api/topics";
import type { NewRecord } from "../../api/types";
import { Button, Field } from "../../components/controls";
import { CloseIcon } from "../../components/icons";
import { toastError, toastOk } from "../../components/toast";
import { base64Of } from "./payload";

interface SendForm {
  key: string;
  value: string;
  partition: string;
  headers: string;
}

const EMPTY: SendForm = { key: "", value: "", partition: "", headers: "" };

interface SendProps {
  topic: string;
  partitionCount: number;
  onClose: () => void;
}

export function SendRecord({ topic, partitionCount, onClose }: SendProps) {
  const [form, setForm] = useState(EMPTY);
  const produce = useProduce(topic);
  const set = (change: Partial<SendForm>): void => setForm({ ...form, ...change });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    produce.mutate(toNewRecord(form), {
      onSuccess: ({ partition, offset }) =>
        toastOk(`Written to partition ${partition} at offset ${formatCount(offset)}.`),
      onError: toastError,
    });
  };
  return (
    <aside className="card side-panel" aria-label="Send a record">
      <header>
        <h2>Send a record</h2>
        <button type="button" className="icon-button" aria-label="Close" onClick={onClose}>
          <CloseIcon />
        </button>
      </header>
      <form
        className="form"
        onSubmit={submit}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
          if (event.key === "Escape") onClose();
        }}
      >
        <Field label="Key" hint="Optional. Records with the same key go to the same partition.">
          {(field) => (
            <input
              {...field}
              autoFocus
              className="input mono"
              autoComplete="off"
              value={form.key}
              onChange={(event) => set({ key: event.target.value })}
            />
          )}
        </Field>
        <Field label="Value" hint={valueHint(form.value)}>
          {(field) => (
            <textarea
              {...field}
              className="input"
              rows={5}
              spellCheck={false}
              placeholder='{"total": 12}'
              value={form.value}
              onChange={(event) => set({ value: event.target.value })}
            />
          )}
        </Field>
        <details>
          <summary>Headers and partition</summary>
          <div className="form">
            <Field label="Headers" hint="One per line, name: value">
              {(field) => (
                <textarea
                  {...field}
                  className="input headers-input"
                  rows={2}
                  spellCheck={false}
                  placeholder="source: web"
                  value={form.headers}
                  onChange={(event) => set({ headers: event.target.value })}
                />
              )}
            </Field>
            <Field label="Partition">
              {(field) => (
                <select
                  {...field}
                  className="select"
                  value={form.partition}
                  onChange={(event) => set({ partition: event.target.value })}
                >
                  <option value="">By the key</option>
                  {Array.from({ length: partitionCount }, (_, partition) => (
                    <option key={partition} value={partition}>
                      {partition}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          </div>
        </details>
        <div className="form-actions">
          <span className="muted send-hint">Ctrl+Enter sends</span>
          <Button tone="primary" type="submit" disabled={produce.isPending}>
            {produce.isPending ? "Sending…" : "Send"}
          </Button>
        </div>
      </form>
    </aside>
  );
}

// The bytes typed are the bytes sent: as a STRING, so that no number passes through a JavaScript double.
function toNewRecord(form: SendForm): NewRecord {
  const headers = form.headers
    .split("\n")
    .filter((line) => line.includes(":"))
    .map((line) => ({ name: line.slice(0, line.indexOf(":")).trim(), text: line.slice(line.indexOf(":") + 1).trim() }))
    .map(({ name, text }) => ({ name, value: base64Of(text) }));
  return {
    value: { type: "STRING", data: form.value },
    ...(form.key ? { key: { type: "STRING" as const, data: form.key } } : {}),
    ...(form.partition ? { partition: Number(form.partition) } : {}),
    ...(headers.length ? { headers } : {}),
  };
}

function valueHint(value: string): string {
  if (!/^\s*[{[]/.test(value)) return "Sent as typed.";
  try {
    JSON.parse(value);
    return "Valid JSON. Sent as typed.";
  } catch {
    return "Not valid JSON yet; it would be sent as plain text.";
  }
}
