// A windowed list: only the rows in view exist. Newest on top; reading further down is not disturbed by new arrivals.
import {
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
  type RefObject,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { formatCount } from "../../api/int64";
import type { LogRecord } from "../../api/types";
import { clockTime } from "../../components/time";
import { payloadPreview } from "./payload";
import type { TailRow } from "./tail-rows";
import { useRowHeight } from "./use-row-height";

const OVERSCAN_ROWS = 6;

interface RecordListProps {
  rows: readonly TailRow[];
  selectedId: string | null;
  onSelect: (record: LogRecord) => void;
  empty: ReactNode;
}

export function RecordList({ rows, selectedId, onSelect, empty }: RecordListProps) {
  const box = useRef<HTMLDivElement>(null);
  const rowHeight = useRowHeight();
  const [view, setView] = useState({ top: 0, height: 600 });
  const measure = (): void => {
    if (box.current) setView({ top: box.current.scrollTop, height: box.current.clientHeight });
  };
  useLayoutEffect(measure, []);
  const anchor = useAnchor(box, rows, rowHeight);
  const first = Math.max(0, Math.floor(view.top / rowHeight) - OVERSCAN_ROWS);
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / rowHeight) + OVERSCAN_ROWS);
  const isAway = view.top > rowHeight;
  return (
    <div className="card record-list">
      <div className="record-row record-head" aria-hidden="true">
        <span>Time</span>
        <span className="num">Part</span>
        <span className="num">Offset</span>
        <span>Key</span>
        <span>Value</span>
      </div>
      <div className="record-scroll" ref={box} onScroll={measure} onKeyDown={moveFocus} {...anchor}>
        {rows.length === 0 && <div className="record-empty">{empty}</div>}
        <ol className="record-space" style={{ height: rows.length * rowHeight }} aria-label="Records, newest first">
          {rows.slice(first, last).map((row, index) => (
            <li key={row.id} style={{ transform: `translateY(${(first + index) * rowHeight}px)` }}>
              {row.kind === "record" ? (
                <RecordRow row={row} isSelected={row.id === selectedId} onSelect={onSelect} />
              ) : (
                <GapMark row={row} />
              )}
            </li>
          ))}
        </ol>
      </div>
      {isAway && (
        <button
          type="button"
          className="button button-primary button-small to-newest"
          onClick={() => box.current?.scrollTo({ top: 0 })}
        >
          ↑ Newest
        </button>
      )}
    </div>
  );
}

interface RecordRowProps {
  row: Extract<TailRow, { kind: "record" }>;
  isSelected: boolean;
  onSelect: (record: LogRecord) => void;
}

function RecordRow({ row: { id, record }, isSelected, onSelect }: RecordRowProps) {
  return (
    <button
      type="button"
      className="record-row"
      aria-pressed={isSelected}
      // At once with a mouse: in a fast tail the button may be released over another row.
      onPointerDown={(event) => event.pointerType === "mouse" && event.button === 0 && onSelect(record)}
      onClick={() => onSelect(record)}
      data-record={id}
    >
      <span className="muted">{clockTime(record.timestamp)}</span>
      <span className="num record-partition">{record.partition}</span>
      <span className="num">{formatCount(record.offset)}</span>
      <span className={record.key === null ? "record-null" : "record-key"}>{payloadPreview(record.key)}</span>
      <span className={record.value === null ? "record-null" : "record-value"}>{payloadPreview(record.value)}</span>
    </button>
  );
}

function GapMark({ row: { gap } }: { row: Extract<TailRow, { kind: "mark" }> }) {
  const many = gap.to > gap.from;
  return (
    <div className="gap-mark" title="Taken by retention or compaction, or held by transaction markers">
      Partition {gap.partition}: offset{many ? "s" : ""} {formatCount(gap.from)}
      {many && ` to ${formatCount(gap.to)}`} {many ? "are" : "is"} not there
    </div>
  );
}

/**
 * Keeps rows where they are while they are being read: when scrolled down, and while the mouse is over them, since
 * nobody can click what moves away. Leaving with the mouse goes back to the newest, unless the user has scrolled.
 */
function useAnchor(box: RefObject<HTMLDivElement | null>, rows: readonly TailRow[], rowHeight: number) {
  const previousFirst = useRef<string | null>(null);
  const held = useRef({ isOver: false, addedPx: 0 });
  useLayoutEffect(() => {
    const before = previousFirst.current;
    previousFirst.current = rows[0]?.id ?? null;
    if (!box.current || before === null || (box.current.scrollTop === 0 && !held.current.isOver)) return;
    const addedPx = rows.findIndex((row) => row.id === before) * rowHeight;
    if (addedPx <= 0) return;
    const beforePx = box.current.scrollTop;
    box.current.scrollBy({ top: addedPx, behavior: "instant" });
    held.current.addedPx += box.current.scrollTop - beforePx;
  }, [box, rows, rowHeight]);
  return {
    onPointerEnter: (event: PointerEvent): void => {
      const isAtTop = box.current?.scrollTop === 0;
      held.current = { isOver: event.pointerType === "mouse", addedPx: isAtTop ? 0 : NaN };
    },
    onPointerLeave: (): void => {
      const wasOnlyHeld = box.current?.scrollTop === held.current.addedPx;
      held.current = { isOver: false, addedPx: 0 };
      if (wasOnlyHeld) box.current?.scrollTo({ top: 0, behavior: "instant" });
    },
  };
}

function moveFocus(event: KeyboardEvent<HTMLDivElement>): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step === 0) return;
  const buttons = [...event.currentTarget.querySelectorAll<HTMLElement>("button.record-row")];
  const next = buttons[buttons.indexOf(document.activeElement as HTMLElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
