// The live tail: records as they are written, over the socket.
import { useEffect, useMemo, useRef, useState } from "react";
import { useWriteAccess } from "../../api/session";
import type { LogRecord, PartitionRow } from "../../api/types";
import { Button } from "../../components/controls";
import { SendIcon } from "../../components/icons";
import { RecordDetail } from "./record-detail";
import { RecordList } from "./record-list";
import { SendRecord } from "./send-record";
import { recordMatches } from "./payload";
import { useTailChoice } from "./tail-choice";
import { StartPicker } from "./start-picker";
import { TailBar } from "./tail-bar";
import { type TailRow, rowId } from "./tail-rows";
import { useTail } from "./use-tail";

export function MessagesTab({ topic, rows }: { topic: string; rows: PartitionRow[] }) {
  const [choice, setChoice] = useTailChoice(topic);
  const { state, store } = useTail(topic, choice);
  const [searchText, setSearchText] = useState("");
  const [isSending, setIsSending] = useState(false);
  const writeAccess = useWriteAccess();
  const wantedId = choice.from === "offset" ? rowId(choice.partition ?? 0, choice.offset) : null;
  const shown = useMemo(() => matching(state.rows, searchText), [state.rows, searchText]);
  const [selected, setSelected] = useSelected(state.rows, wantedId);
  const closeSide = (): void => {
    setSelected(null);
    setIsSending(false);
  };
  const hasSide = isSending || selected !== null;
  return (
    <section className="messages" aria-label="Messages">
      <div className="messages-bar">
        <StartPicker choice={choice} onChange={setChoice} partitionCount={rows.length} />
        <input
          className="input messages-search"
          type="search"
          aria-label="Search in the records shown"
          placeholder="Search in what is shown"
          value={searchText}
          onChange={(event) => setSearchText(event.target.value)}
        />
        <Button tone="primary" aria-expanded={isSending} onClick={() => setIsSending(!isSending)} {...writeAccess}>
          <SendIcon />
          Send a record
        </Button>
      </div>
      <TailBar
        state={state}
        store={store}
        rows={rows}
        shownCount={searchText ? shown.length : null}
        onLatest={() => setChoice({ ...choice, from: "latest", offset: "" })}
      />
      <div className={hasSide ? "messages-body messages-split" : "messages-body"}>
        <RecordList
          rows={shown}
          selectedId={selected ? rowId(selected.partition, selected.offset) : null}
          onSelect={(record) => {
            setSelected(record);
            setIsSending(false);
          }}
          empty={<NothingYet phase={state.phase} isSearching={searchText !== ""} receivedCount={state.receivedCount} />}
        />
        {isSending ? (
          <SendRecord topic={topic} partitionCount={rows.length} onClose={closeSide} />
        ) : (
          selected && <RecordDetail topic={topic} record={selected} onClose={closeSide} />
        )}
      </div>
    </section>
  );
}

function matching(rows: readonly TailRow[], searchText: string): readonly TailRow[] {
  const needle = searchText.toLowerCase();
  return needle ? rows.filter((row) => row.kind === "record" && recordMatches(row.record, needle)) : rows;
}

/** The record itself is kept, since a fast tail soon drops its row. The one that a link names opens when it arrives. */
function useSelected(rows: readonly TailRow[], wantedId: string | null) {
  const [selected, setSelected] = useState<LogRecord | null>(null);
  const openedFor = useRef<string | null>(null);
  useEffect(() => {
    if (wantedId === null || openedFor.current === wantedId) return;
    const row = rows.find((candidate) => candidate.id === wantedId);
    if (row?.kind !== "record") return;
    openedFor.current = wantedId;
    setSelected(row.record);
  }, [rows, wantedId]);
  return [selected, setSelected] as const;
}

function NothingYet(props: { phase: string; isSearching: boolean; receivedCount: number }) {
  if (props.isSearching)
    return <p className="muted">None of the {props.receivedCount} records read so far has this.</p>;
  if (props.phase === "caught-up" || props.phase === "reading") {
    return (
      <>
        <strong>Waiting for the first record</strong>
        <p className="muted">Send one with the button above, or from any Kafka client: it appears here at once.</p>
      </>
    );
  }
  return <p className="muted">Connecting…</p>;
}
