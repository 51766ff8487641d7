// The live tail: records as they are written, over the socket.
import { useMemo, useState } from "react";
import type { PartitionRow } from "../../api/types";
import { Button } from "../../components/controls";
import { SendIcon } from "../../components/icons";
import { RecordDetail } from "./record-detail";
import { RecordList } from "./record-list";
import { SendRecord } from "./send-record";
import { recordMatches } from "./payload";
import { useTailChoice } from "./tail-choice";
import { StartPicker } from "./start-picker";
import { TailBar } from "./tail-bar";
import { type TailRow, rowId } from "./tail-store";
import { useTail } from "./use-tail";

export function MessagesTab({ topic, rows }: { topic: string; rows: PartitionRow[] }) {
  const [choice, setChoice] = useTailChoice(topic);
  const { state, store } = useTail(topic, choice);
  const [searchText, setSearchText] = useState("");
  const [selectedId, setSelectedId] = useState<string | null>(null);
  const [isSending, setIsSending] = useState(false);
  const wantedId = choice.from === "offset" ? rowId(choice.partition ?? 0, choice.offset) : null;
  const shown = useMemo(() => matching(state.rows, searchText), [state.rows, searchText]);
  const selected = useMemo(() => find(state.rows, selectedId ?? wantedId), [state.rows, selectedId, wantedId]);
  const closeSide = (): void => {
    setSelectedId(selectedId === null && wantedId ? "" : null);
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
        <Button tone="primary" aria-expanded={isSending} onClick={() => setIsSending(!isSending)}>
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
          onSelect={(id) => {
            setSelectedId(id);
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

function find(rows: readonly TailRow[], id: string | null) {
  const row = id === null ? undefined : rows.find((candidate) => candidate.id === id);
  return row?.kind === "record" ? row.record : null;
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
