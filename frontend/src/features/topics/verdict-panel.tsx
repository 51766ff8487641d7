import { CheckIcon, CloseIcon } from "../../components/icons";
import type { VerdictView } from "./verdict";

const MARKS = { ok: <CheckIcon />, fail: <CloseIcon />, pending: <span className="verdict-dot" /> };
const SAID = { ok: "met:", fail: "not met:", pending: "" };

export function VerdictPanel({ view }: { view: VerdictView }) {
  return (
    <section className={`verdict verdict-${view.tone}`} aria-label="Policy" data-tone={view.tone}>
      <h3 aria-live="polite">{view.headline}</h3>
      <ul>
        {view.rows.map((row) => (
          <li key={row.rule} className={`verdict-${row.state}`}>
            {MARKS[row.state]}
            <div>
              <strong>{row.label}</strong> <span className="visually-hidden">{SAID[row.state]}</span>
              <span>{row.message}</span>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
