// Small shared pieces: buttons, fields, chips, copying, notices.
import { type ButtonHTMLAttributes, type ReactNode, useId, useState } from "react";
import { ApiError } from "../api/http";
import { AlertIcon, CheckIcon, CopyIcon } from "./icons";

type Tone = "primary" | "plain" | "danger";

export function Button({ tone = "plain", ...rest }: ButtonHTMLAttributes<HTMLButtonElement> & { tone?: Tone }) {
  return <button type="button" className={`button button-${tone}`} {...rest} />;
}

export type ChipTone = "ok" | "warn" | "bad" | "quiet" | "accent";

export function Chip({ tone, title, children }: { tone: ChipTone; title?: string; children: ReactNode }) {
  return (
    <span className={`chip chip-${tone}`} title={title}>
      {children}
    </span>
  );
}

interface FieldProps {
  label: string;
  hint?: ReactNode;
  error?: string | undefined;
  children: (props: { id: string; "aria-describedby": string; "aria-invalid": boolean }) => ReactNode;
}

export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-describedby": `${id}-note`, "aria-invalid": error !== undefined })}
      <div id={`${id}-note`} className={error ? "field-note field-error" : "field-note"}>
        {error ?? hint}
      </div>
    </div>
  );
}

const COPIED_SHOWN_MS = 1_600;

interface CopyProps {
  text: string;
  label?: string;
  isFirst?: boolean;
}

/** `isFirst`: gets the focus when its dialog opens. */
export function CopyButton({ text, label = "Copy", isFirst = false }: CopyProps) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = (): void => {
    void copyText(text).then((done) => {
      setIsCopied(done);
      window.setTimeout(() => setIsCopied(false), COPIED_SHOWN_MS);
    });
  };
  return (
    <button
      type="button"
      className="button button-plain button-small"
      onClick={copy}
      aria-live="polite"
      data-autofocus={isFirst || undefined}
    >
      {isCopied ? <CheckIcon /> : <CopyIcon />}
      {isCopied ? "Copied" : label}
    </button>
  );
}

// The clipboard needs a secure context; over plain http on another host only the old way is left.
async function copyText(text: string): Promise<boolean> {
  if (window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return true;
  }
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way without a secure context
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

export function CodeBlock({ code, label }: { code: string; label: string }) {
  return (
    <figure className="code-block">
      <figcaption>
        <span>{label}</span>
        <CopyButton text={code} />
      </figcaption>
      <pre tabIndex={0}>
        <code>{code}</code>
      </pre>
    </figure>
  );
}

/** What went wrong, what to do, and a way to try again; in place of what could not be shown. */
export function Failure({ error, onRetry }: { error: unknown; onRetry: () => void }) {
  const advice = error instanceof ApiError ? error.advice : "";
  return (
    <div className="notice notice-bad" role="alert">
      <AlertIcon />
      <div>
        <strong>{error instanceof Error ? error.message : String(error)}</strong>
        {advice && <p>{advice}</p>}
      </div>
      <Button onClick={onRetry}>Try again</Button>
    </div>
  );
}

export function Skeleton({ rows }: { rows: number }) {
  return (
    <div className="skeleton" aria-label="Loading" role="status">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} />
      ))}
    </div>
  );
}

export function Meter({ label, used, limit }: { label: string; used: number; limit: number | null }) {
  const share = limit ? Math.min(1, used / limit) : 0;
  const tone = share >= 1 ? "bad" : share >= 0.8 ? "warn" : "ok";
  return (
    <div className="meter">
      <span className="meter-label">{label}</span>
      <span className="meter-value">
        {used.toLocaleString("en")}
        <span className="muted"> {limit === null ? "· no limit" : `of ${limit.toLocaleString("en")}`}</span>
      </span>
      {limit !== null && (
        <span className="meter-track" role="meter" aria-label={label} aria-valuenow={used} aria-valuemax={limit}>
          <span className={`meter-fill meter-${tone}`} style={{ width: `${share * 100}%` }} />
        </span>
      )}
    </div>
  );
}
