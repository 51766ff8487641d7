import { type SyntheticEvent, useState } from "react";
import { asShown, usePreview, useResetOffsets, useResetPlan } from "../../api/groups";
import { formatCount } from "../../api/int64";
import type { GroupPage, LogRecord, ResetPlan, ResetStep, ResetWish } from "../../api/types";
import { Button, CodeBlock, Failure, Skeleton } from "../../components/controls";
import { messageHref, recordsText } from "../../components/lag";
import { toastError, toastOk } from "../../components/toast";
import { TypedName } from "../../components/typed-name";
import { MembersNotice } from "./members-notice";

interface ReviewProps {
  group: GroupPage;
  wish: ResetWish;
  onBack: () => void;
  onClose: () => void;
}

export function ResetReview({ group, wish, onBack, onClose }: ReviewProps) {
  const plan = useResetPlan(group.name, wish);
  if (plan.error) {
    return (
      <div className="form">
        <Failure error={plan.error} onRetry={() => void plan.refetch()} />
        <div className="form-actions">
          <Button onClick={onBack}>Back</Button>
        </div>
      </div>
    );
  }
  if (!plan.data) return <Skeleton rows={5} />;
  return <Review group={group} plan={plan.data} onBack={onBack} onClose={onClose} />;
}

const ROWS_SHOWN = 100;

function Review({ group, plan, onBack, onClose }: Omit<ReviewProps, "wish"> & { plan: ResetPlan }) {
  const [typed, setTyped] = useState("");
  const reset = useResetOffsets(group.name);
  // Those that came or went since the dry run count as well.
  const memberCount = group.member_count ?? plan.member_count;
  const isReady = typed === group.name && memberCount === 0 && !reset.isPending;
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    if (!isReady) return;
    reset.mutate(asShown(plan.steps), {
      onError: toastError,
      onSuccess: () => {
        toastOk(`${plan.steps.length} offsets of ${group.name} are set.`);
        onClose();
      },
    });
  };
  return (
    <form className="form" onSubmit={submit}>
      <p className="reset-sum" data-testid="reset-sum">
        {sumText(plan)} <span className="muted">Nothing has been changed yet.</span>
      </p>
      <StepsTable steps={plan.steps.slice(0, ROWS_SHOWN)} />
      {plan.steps.length > ROWS_SHOWN && <p className="muted">and {plan.steps.length - ROWS_SHOWN} more partitions</p>}
      <CodeBlock label="The same with Kafka’s own tool" code={plan.cli} />
      <MembersNotice count={memberCount} />
      <TypedName name={group.name} typed={typed} onTyped={setTyped} />
      <div className="form-actions">
        <Button onClick={onBack}>Back</Button>
        <Button tone="danger" type="submit" disabled={!isReady}>
          {reset.isPending ? "Setting…" : `Set ${plan.steps.length} ${plan.steps.length === 1 ? "offset" : "offsets"}`}
        </Button>
      </div>
    </form>
  );
}

function sumText(plan: ResetPlan): string {
  const parts = [
    plan.skipped_count !== "0" && `${recordsText(plan.skipped_count)} would be skipped`,
    plan.replayed_count !== "0" && `${recordsText(plan.replayed_count)} would be read again`,
  ].filter(Boolean);
  return parts.length ? `${parts.join(", ")}.` : "No record would be skipped or read again.";
}

function StepsTable({ steps }: { steps: ResetStep[] }) {
  return (
    <div className="table-wrap reset-steps">
      <table className="table stacked-table">
        <thead>
          <tr>
            <th>Partition</th>
            <th className="num">From</th>
            <th className="num">To</th>
            <th>Which means</th>
            <th>First message then</th>
          </tr>
        </thead>
        <tbody>
          {steps.map((step) => (
            <StepRow key={`${step.topic}-${step.partition}`} step={step} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function StepRow({ step }: { step: ResetStep }) {
  return (
    <tr data-step={`${step.topic}-${step.partition}`}>
      <td data-label="Partition" className="place">
        {step.topic}-{step.partition}
      </td>
      <td className="num" data-label="From">
        {step.before === null ? <span className="muted">none</span> : formatCount(step.before)}
      </td>
      <td className="num strong" data-label="To">
        {formatCount(step.after)}
      </td>
      <td data-label="Which means">{meaning(step)}</td>
      <td data-label="First message then" className="preview-cell">
        <Preview step={step} />
      </td>
    </tr>
  );
}

function meaning(step: ResetStep): string {
  if (step.skipped_count !== "0") return `${formatCount(step.skipped_count)} skipped`;
  if (step.replayed_count !== "0") return `${formatCount(step.replayed_count)} read again`;
  return step.before === null ? "begins here" : "stays";
}

function Preview({ step }: { step: ResetStep }) {
  const preview = usePreview(step.preview);
  if (step.preview === null) return <span className="muted">the next that is written</span>;
  if (preview.error) return <span className="muted">{preview.error.message}</span>;
  if (!preview.data) return <span className="muted">…</span>;
  return (
    <a href={messageHref(step.topic, step.partition, step.after)} target="_blank" rel="noreferrer" className="preview">
      {previewText(preview.data)}
    </a>
  );
}

function previewText({ value }: LogRecord): string {
  if (value === null) return "(no value)";
  return value.type === "json" ? value.text : value.data;
}
