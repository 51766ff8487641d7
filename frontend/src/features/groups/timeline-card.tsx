// Why the group rebalanced, over time: who came, left or fell silent, how long it took to settle, and what moved.
import { useEffect, useState } from "react";
import type { RebalanceEvent } from "../../api/types";
import { Ago, clockTime } from "../../components/time";
import { type TimelineMark, timelineOf } from "./timeline";
import { eventText, type EventTone, toneOfEvent } from "./words";

const LISTED = 8;
const REDRAW_MS = 5_000;
const LEGEND: readonly [EventTone, string][] = [
  ["in", "joined"],
  ["out", "left"],
  ["bad", "timed out"],
  ["note", "changed"],
  ["done", "rebalance"],
];

export function TimelineCard({ events, protocol }: { events: RebalanceEvent[]; protocol: string }) {
  const nowMs = useNow();
  const picture = timelineOf(events, nowMs);
  return (
    <section className="card timeline-card" aria-label="Rebalances">
      <div className="card-head">
        <h2>Rebalances</h2>
        <span className="timeline-legend muted">
          {LEGEND.map(([tone, word]) => (
            <span key={tone}>
              <i className={`event-${tone}`} /> {word}
            </span>
          ))}
        </span>
      </div>
      {picture === null ? (
        <p className="muted members-empty">Nothing has happened since its coordinator took it over.</p>
      ) : (
        <>
          <div
            className="timeline"
            role="img"
            aria-label={`${events.length} events, the last ${eventText(events.at(-1) as RebalanceEvent)}`}
          >
            {picture.ticks.map((tick) => (
              <span key={tick.label} className="timeline-tick" style={{ left: `${tick.at * 100}%` }}>
                {tick.label}
              </span>
            ))}
            {picture.marks.map((mark, index) => (
              <Mark key={`${mark.event.at_ms}-${index}`} mark={mark} />
            ))}
          </div>
          <ol className="events">
            {[...events]
              .reverse()
              .slice(0, LISTED)
              .map((event, index) => (
                <li key={`${event.at_ms}-${index}`} data-event={event.kind}>
                  <i className={`event-${toneOfEvent(event.kind)}`} aria-hidden="true" />
                  <span>{eventText(event)}</span>
                  <span className="muted">
                    {protocol === "consumer" ? "epoch" : "generation"} {event.generation} · <Ago at={event.at_ms} />
                  </span>
                </li>
              ))}
          </ol>
        </>
      )}
    </section>
  );
}

function Mark({ mark }: { mark: TimelineMark }) {
  const title = `${clockTime(mark.event.at_ms)} ${eventText(mark.event)}`;
  const style =
    mark.tone === "done"
      ? { left: `${mark.at * 100}%`, width: `max(6px, ${mark.width * 100}%)` }
      : { left: `${mark.at * 100}%` };
  return <span className={`timeline-mark event-${mark.tone}`} style={style} title={title} />;
}

function useNow(): number {
  const [nowMs, setNowMs] = useState(() => Date.now());
  useEffect(() => {
    const timer = window.setInterval(() => setNowMs(Date.now()), REDRAW_MS);
    return () => window.clearInterval(timer);
  }, []);
  return nowMs;
}
