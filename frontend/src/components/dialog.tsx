// A modal on the platform's own <dialog>: the page behind is inert, Esc closes, focus returns to where it came from.
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef } from "react";
import { CloseIcon } from "./icons";

interface DialogProps {
  title: string;
  children: ReactNode;
  onClose: () => void;
  size?: "normal" | "wide";
}

const FOCUSABLE = "a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea, summary";

export function Dialog({ title, children, onClose, size = "normal" }: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const dialog = box.current;
    const opener = document.activeElement;
    dialog?.showModal();
    dialog?.querySelector<HTMLElement>("[data-autofocus]")?.focus();
    return () => {
      dialog?.close();
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={box}
      className={`dialog dialog-${size}`}
      aria-labelledby={titleId}
      onKeyDown={keepFocusInside}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => event.target === box.current && onClose()}
    >
      <div className="dialog-body">
        <header className="dialog-head">
          <h2 id={titleId}>{title}</h2>
          <button type="button" className="icon-button" aria-label="Close" onClick={onClose}>
            <CloseIcon />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

// showModal lets Tab wander into the browser's own controls; inside a form a closed ring is kinder.
function keepFocusInside(event: KeyboardEvent<HTMLDialogElement>): void {
  if (event.key !== "Tab") return;
  const stops = [...event.currentTarget.querySelectorAll<HTMLElement>(FOCUSABLE)].filter((stop) => stop.offsetParent);
  const edge = event.shiftKey ? stops[0] : stops[stops.length - 1];
  if (!edge || document.activeElement !== edge) return;
  event.preventDefault();
  (event.shiftKey ? stops[stops.length - 1] : stops[0])?.focus();
}
