import { type SyntheticEvent, useEffect, useMemo, useState } from "react";
import { ApiError } from "../../api/http";
import { useCreateTopic, useDryRun } from "../../api/topics";
import type { NewTopic, Tenant } from "../../api/types";
import { Button, CodeBlock, Field } from "../../components/controls";
import { Dialog } from "../../components/dialog";
import { navigate } from "../../components/router";
import { toastOk } from "../../components/toast";
import { curlCommand, emptyForm, RETENTION_PRESETS, type TopicForm, toNewTopic } from "./topic-form";
import { VerdictPanel } from "./verdict-panel";
import { partitionsLeft, verdictView } from "./verdict";

const DEBOUNCE_MS = 250;

export function CreateTopicDialog({ tenant, onClose }: { tenant: Tenant | undefined; onClose: () => void }) {
  const [form, setForm] = useState<TopicForm>(emptyForm);
  const topic = useMemo(() => toNewTopic(form), [form]);
  const view = useVerdict(topic, tenant);
  const create = useCreateTopic();
  const set = (change: Partial<TopicForm>): void => setForm({ ...form, ...change });
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    if (!view.canSubmit || create.isPending) return;
    create.mutate(topic, {
      onSuccess: (created) => {
        toastOk(`Topic ${created.name} is ${created.status === "ready" ? "ready" : "being created"}.`);
        onClose();
        navigate(`/topics/${encodeURIComponent(created.name)}`);
      },
    });
  };
  return (
    <Dialog title="Create a topic" onClose={onClose} size="wide">
      <form className="create-topic" onSubmit={submit}>
        <div className="form">
          <NameAndPartitions form={form} set={set} tenant={tenant} />
          <Advanced form={form} set={set} />
          <details>
            <summary>The same as a command</summary>
            <CodeBlock label="curl" code={curlCommand(topic, location.origin)} />
          </details>
        </div>
        <div className="create-topic-side">
          <VerdictPanel view={view} />
          {create.error && <CreateFailed error={create.error} />}
          <div className="form-actions">
            <Button onClick={onClose}>Cancel</Button>
            <Button tone="primary" type="submit" disabled={!view.canSubmit || create.isPending}>
              {create.isPending ? "Creating…" : "Create topic"}
            </Button>
          </div>
        </div>
      </form>
    </Dialog>
  );
}

interface PartProps {
  form: TopicForm;
  set: (change: Partial<TopicForm>) => void;
}

function NameAndPartitions({ form, set, tenant }: PartProps & { tenant: Tenant | undefined }) {
  const left = partitionsLeft(tenant?.quota.partitions, Number(form.partitions) || 0);
  return (
    <>
      <Field label="Name" hint="Seen by clients; it cannot be changed later.">
        {(field) => (
          <input
            {...field}
            data-autofocus
            className="input mono"
            autoComplete="off"
            spellCheck={false}
            placeholder="orders"
            value={form.name}
            onChange={(event) => set({ name: event.target.value.trim() })}
          />
        )}
      </Field>
      <Field
        label="Partitions"
        hint={
          left === null
            ? "Readers share a topic by partition. Can be raised later, never lowered."
            : `${left.toLocaleString("en")} left of your quota after this. Can be raised later, never lowered.`
        }
      >
        {(field) => (
          <input
            {...field}
            className="input"
            type="number"
            min={1}
            max={10_000}
            required
            value={form.partitions}
            onChange={(event) => set({ partitions: event.target.value })}
          />
        )}
      </Field>
    </>
  );
}

function Advanced({ form, set }: PartProps) {
  return (
    <details>
      <summary>More settings</summary>
      <div className="form">
        <div className="field-row">
          <Field label="Keep records for">
            {(field) => (
              <select
                {...field}
                className="select"
                value={form.retention}
                onChange={(event) => set({ retention: event.target.value })}
              >
                {RETENTION_PRESETS.map(({ value, label }) => (
                  <option key={value} value={value}>
                    {label}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="When old">
            {(field) => (
              <select
                {...field}
                className="select"
                value={form.cleanup}
                onChange={(event) => set({ cleanup: event.target.value as TopicForm["cleanup"] })}
              >
                <option value="">Delete (default)</option>
                <option value="compact">Compact: keep the last of each key</option>
                <option value="compact,delete">Compact, then delete</option>
              </select>
            )}
          </Field>
        </div>
        <div className="field-row">
          <Field label="A write is safe when">
            {(field) => (
              <select
                {...field}
                className="select"
                value={form.durability}
                onChange={(event) => set({ durability: event.target.value as TopicForm["durability"] })}
              >
                <option value="">On disk (default)</option>
                <option value="page-cache">In memory of the brokers (as Apache Kafka)</option>
              </select>
            )}
          </Field>
          <Field label="Copies" hint="Empty: the platform's default.">
            {(field) => (
              <input
                {...field}
                className="input"
                type="number"
                min={1}
                max={9}
                value={form.replicas}
                onChange={(event) => set({ replicas: event.target.value })}
              />
            )}
          </Field>
        </div>
      </div>
    </details>
  );
}

function CreateFailed({ error }: { error: Error }) {
  const lines = error instanceof ApiError ? error.fieldErrors.map(({ field, message }) => `${field}: ${message}`) : [];
  return (
    <div className="notice notice-bad" role="alert">
      <div>
        <strong>{error.message}</strong>
        {lines.map((line) => (
          <p key={line}>{line}</p>
        ))}
        {error instanceof ApiError && <p>{error.advice}</p>}
      </div>
    </div>
  );
}

function useVerdict(topic: NewTopic, tenant: Tenant | undefined) {
  const settled = useDebounced(topic, DEBOUNCE_MS);
  const dryRun = useDryRun(settled.name ? settled : null);
  return verdictView({
    name: topic.name,
    answer: dryRun.data,
    isAnswerCurrent: settled === topic && !dryRun.isPlaceholderData,
    error: dryRun.error,
    policy: tenant?.policy,
  });
}

function useDebounced<T>(value: T, delayMs: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), delayMs);
    return () => window.clearTimeout(timer);
  }, [value, delayMs]);
  return settled;
}
