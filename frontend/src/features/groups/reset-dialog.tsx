// Two steps: choose what and where; then read what would happen, partition by partition, before anything does.
import { type ChangeEvent, type SyntheticEvent, useState } from "react";
import { useTopics } from "../../api/topics";
import type { GroupPage, ResetTo, ResetWish } from "../../api/types";
import { Button, Field } from "../../components/controls";
import { Dialog } from "../../components/dialog";
import { EMPTY_FORM, type ResetForm, wishOf } from "./reset-form";
import { ResetReview } from "./reset-review";

const TARGETS: { to: ResetTo; label: string; hint: string }[] = [
  { to: "earliest", label: "The beginning", hint: "Everything that is still kept is read again." },
  { to: "latest", label: "The end", hint: "What waits now is skipped; only new records are read." },
  { to: "timestamp", label: "A point in time", hint: "The first record of that time or later." },
  { to: "duration", label: "So long ago", hint: "The same, counted back from now." },
  { to: "offset", label: "An offset", hint: "The same number in every chosen partition." },
  { to: "shift", label: "Back or forward by", hint: "From what is committed now; negative reads again." },
  { to: "current", label: "Where it is now", hint: "What is committed; partitions without a commit go to the end." },
  {
    to: "file",
    label: "A file",
    hint: "CSV, topic,partition,offset per line, as an export or kafka-consumer-groups writes it.",
  },
];

export function ResetDialog({ group, onClose }: { group: GroupPage; onClose: () => void }) {
  const [form, setForm] = useState(EMPTY_FORM);
  const [wish, setWish] = useState<ResetWish | null>(null);
  return (
    <Dialog title={`Reset offsets of ${group.name}`} onClose={onClose} size="wide">
      {wish ? (
        <ResetReview group={group} wish={wish} onBack={() => setWish(null)} onClose={onClose} />
      ) : (
        <Choices group={group} form={form} setForm={setForm} onDone={setWish} onClose={onClose} />
      )}
    </Dialog>
  );
}

interface ChoicesProps {
  group: GroupPage;
  form: ResetForm;
  setForm: (form: ResetForm) => void;
  onDone: (wish: ResetWish) => void;
  onClose: () => void;
}

function Choices({ group, form, setForm, onDone, onClose }: ChoicesProps) {
  const [problem, setProblem] = useState<{ field: keyof ResetForm; problem: string } | null>(null);
  const change = (changes: Partial<ResetForm>): void => {
    setProblem(null);
    setForm({ ...form, ...changes });
  };
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    const made = wishOf(form);
    if ("wish" in made) onDone(made.wish);
    else setProblem(made);
  };
  const errorOf = (field: keyof ResetForm): string | undefined =>
    problem?.field === field ? problem.problem : undefined;
  return (
    <form className="form" onSubmit={submit}>
      <Field label="To" hint={TARGETS.find(({ to }) => to === form.to)?.hint}>
        {(field) => (
          <select
            {...field}
            data-autofocus
            className="select"
            value={form.to}
            onChange={(event) => change({ to: event.target.value as ResetTo })}
          >
            {TARGETS.map(({ to, label }) => (
              <option key={to} value={to}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Target form={form} change={change} errorOf={errorOf} />
      {form.to !== "file" && <ScopeFields group={group} form={form} change={change} errorOf={errorOf} />}
      <div className="form-actions">
        <Button onClick={onClose}>Cancel</Button>
        <Button tone="primary" type="submit">
          See what would happen
        </Button>
      </div>
    </form>
  );
}

interface PartProps {
  form: ResetForm;
  change: (changes: Partial<ResetForm>) => void;
  errorOf: (field: keyof ResetForm) => string | undefined;
}

function ScopeFields({ group, form, change, errorOf }: PartProps & { group: GroupPage }) {
  const others = useTopics().data?.filter(({ name }) => !group.topics.includes(name)) ?? [];
  return (
    <div className="field-row">
      <Field label="Topic">
        {(field) => (
          <select
            {...field}
            className="select"
            value={form.topic}
            onChange={(event) => change({ topic: event.target.value })}
          >
            <option value="">All that it has offsets in</option>
            {group.topics.map((topic) => (
              <option key={topic} value={topic}>
                {topic}
              </option>
            ))}
            {others.length > 0 && (
              <optgroup label="Topics that it has not read">
                {others.map(({ name }) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
              </optgroup>
            )}
          </select>
        )}
      </Field>
      {form.topic && (
        <Field label="Partitions" hint="All, unless you name some: 0, 2-4" error={errorOf("partitions")}>
          {(field) => (
            <input
              {...field}
              className="input"
              placeholder="All"
              value={form.partitions}
              onChange={(event) => change({ partitions: event.target.value })}
            />
          )}
        </Field>
      )}
    </div>
  );
}

function Target({ form, change, errorOf }: PartProps) {
  switch (form.to) {
    case "timestamp":
      return (
        <Field label="Time" hint="In your own time zone" error={errorOf("time")}>
          {(field) => (
            <input
              {...field}
              className="input"
              type="datetime-local"
              step="1"
              value={form.time}
              onChange={(event) => change({ time: event.target.value })}
            />
          )}
        </Field>
      );
    case "duration":
      return <DurationFields form={form} change={change} errorOf={errorOf} />;
    case "offset":
      return (
        <Field label="Offset" hint="Outside of the log it becomes the nearer end" error={errorOf("offset")}>
          {(field) => (
            <input
              {...field}
              className="input"
              inputMode="numeric"
              value={form.offset}
              onChange={(event) => change({ offset: event.target.value })}
            />
          )}
        </Field>
      );
    case "shift":
      return (
        <Field label="Records" error={errorOf("shift")}>
          {(field) => (
            <input
              {...field}
              className="input"
              value={form.shift}
              onChange={(event) => change({ shift: event.target.value })}
            />
          )}
        </Field>
      );
    case "file":
      return <FileField form={form} change={change} errorOf={errorOf} />;
    default:
      return null;
  }
}

function DurationFields({ form, change, errorOf }: PartProps) {
  return (
    <div className="field-row">
      <Field label="How long ago" error={errorOf("amount")}>
        {(field) => (
          <input
            {...field}
            className="input"
            inputMode="decimal"
            value={form.amount}
            onChange={(event) => change({ amount: event.target.value })}
          />
        )}
      </Field>
      <Field label="Unit">
        {(field) => (
          <select
            {...field}
            className="select"
            value={form.unit}
            onChange={(event) => change({ unit: event.target.value as ResetForm["unit"] })}
          >
            <option value="minutes">minutes</option>
            <option value="hours">hours</option>
            <option value="days">days</option>
          </select>
        )}
      </Field>
    </div>
  );
}

function FileField({ form, change, errorOf }: PartProps) {
  const take = (event: ChangeEvent<HTMLInputElement>): void => {
    const file = event.target.files?.[0];
    if (file) void file.text().then((csv) => change({ csv }));
  };
  return (
    <>
      <input type="file" accept=".csv,text/csv,text/plain" aria-label="CSV file" onChange={take} />
      <Field label="Lines" error={errorOf("csv")}>
        {(field) => (
          <textarea
            {...field}
            className="input"
            placeholder="orders,0,1200"
            value={form.csv}
            onChange={(event) => change({ csv: event.target.value })}
          />
        )}
      </Field>
    </>
  );
}
