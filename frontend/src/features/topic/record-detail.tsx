import type { LogRecord, Payload } from "../../api/types";
import { formatCount } from "../../api/int64";
import { CopyButton } from "../../components/controls";
import { CloseIcon } from "../../components/icons";
import { prettyTokens } from "./json-text";
import { bytesOf, headerText, hexDump, payloadText } from "./payload";
import { recordLink } from "./tail-choice";

interface DetailProps {
  topic: string;
  record: LogRecord;
  onClose: () => void;
}

export function RecordDetail({ topic, record, onClose }: DetailProps) {
  const link = `${location.origin}${recordLink(topic, record.partition, record.offset)}`;
  return (
    <aside className="card side-panel" aria-label="Record">
      <header>
        <h2>
          Partition {record.partition}, offset {formatCount(record.offset)}
        </h2>
        <button type="button" className="icon-button" aria-label="Close record" onClick={onClose}>
          <CloseIcon />
        </button>
      </header>
      <p className="muted" title={String(record.timestamp)}>
        {new Date(record.timestamp).toISOString().replace("T", " ").replace("Z", " UTC")}
      </p>
      <PayloadView label="Key" payload={record.key} />
      <PayloadView label="Value" payload={record.value} />
      <Headers record={record} />
      <CopyButton text={link} label="Copy link to this record" />
    </aside>
  );
}

function PayloadView({ label, payload }: { label: string; payload: Payload }) {
  return (
    <section className="payload">
      <header>
        <h3>
          {label} <span className="muted">{payload === null ? "" : kindOf(payload)}</span>
        </h3>
        {payload !== null && <CopyButton text={payloadText(payload)} />}
      </header>
      {payload === null ? (
        <p className="record-null">{label === "Value" ? "null (a tombstone in a compacted topic)" : "null"}</p>
      ) : (
        <pre tabIndex={0}>
          <PayloadBody payload={payload} />
        </pre>
      )}
    </section>
  );
}

const KINDS = { json: "JSON", string: "text", base64: "binary" };
const kindOf = (payload: NonNullable<Payload>): string => KINDS[payload.type];

function PayloadBody({ payload }: { payload: NonNullable<Payload> }) {
  if (payload.type === "base64") return hexDump(bytesOf(payload.data));
  const text = payloadText(payload);
  const tokens = payload.type === "json" ? prettyTokens(text) : null;
  if (!tokens) return text;
  return tokens.map((token, index) => (
    <span key={index} className={`json-${token.kind}`}>
      {token.text}
    </span>
  ));
}

function Headers({ record }: { record: LogRecord }) {
  if (record.headers.length === 0) return <p className="muted">No headers</p>;
  return (
    <section className="payload">
      <h3>Headers</h3>
      <dl className="header-list">
        {record.headers.map((header, index) => (
          <div key={index}>
            <dt>{header.name}</dt>
            <dd>{headerText(header.value)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
