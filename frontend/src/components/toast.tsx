// Short messages in a corner. Errors stay until closed and say what to do next.
import { useSyncExternalStore } from "react";
import { ApiError } from "../api/http";
import { AlertIcon, CheckIcon, CloseIcon } from "./icons";

interface Toast {
  id: number;
  tone: "ok" | "bad";
  title: string;
  advice: string;
}

const OK_SHOWN_MS = 4_000;
const TOASTS_MAX = 4;

let toasts: readonly Toast[] = [];
let nextId = 1;
const listeners = new Set<() => void>();

function change(next: readonly Toast[]): void {
  toasts = next;
  listeners.forEach((listener) => listener());
}

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const dismiss = (id: number): void => change(toasts.filter((toast) => toast.id !== id));

function add(tone: Toast["tone"], title: string, advice: string): number {
  const id = nextId;
  nextId += 1;
  const others = toasts.filter((toast) => toast.title !== title);
  change([...others, { id, tone, title, advice }].slice(-TOASTS_MAX));
  return id;
}

export function toastOk(title: string): void {
  const id = add("ok", title, "");
  window.setTimeout(() => dismiss(id), OK_SHOWN_MS);
}

export function toastError(error: unknown): void {
  if (error instanceof ApiError) add("bad", error.message, error.advice);
  else add("bad", error instanceof Error ? error.message : String(error), "Reload the page and try again.");
}

export function Toasts() {
  const shown = useSyncExternalStore(listen, () => toasts);
  return (
    <div className="toasts" role="region" aria-label="Messages" aria-live="polite">
      {shown.map((toast) => (
        <div key={toast.id} className={`toast toast-${toast.tone}`} role={toast.tone === "bad" ? "alert" : "status"}>
          {toast.tone === "bad" ? <AlertIcon /> : <CheckIcon />}
          <div>
            <strong>{toast.title}</strong>
            {toast.advice && <p>{toast.advice}</p>}
          </div>
          <button type="button" className="icon-button" aria-label="Close message" onClick={() => dismiss(toast.id)}>
            <CloseIcon />
          </button>
        </div>
      ))}
    </div>
  );
}
