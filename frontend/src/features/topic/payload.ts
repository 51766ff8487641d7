// Keys, values and headers as text for people. Pure; bytes that are not text are shown as hex.
import type { LogRecord, Payload } from "../../api/types";

export function payloadText(payload: Payload): string {
  if (payload === null) return "null";
  if (payload.type === "json") return payload.text;
  return payload.type === "string" ? payload.data : hexOf(bytesOf(payload.data));
}

const PREVIEW_MAX = 400;

/** One line, for a row. */
export function payloadPreview(payload: Payload): string {
  if (payload?.type === "base64") return binaryPreview(bytesOf(payload.data));
  return payloadText(payload).slice(0, PREVIEW_MAX).replace(/\s+/g, " ");
}

function binaryPreview(bytes: Uint8Array): string {
  return `${bytes.length} bytes: ${hexOf(bytes.slice(0, 32))}${bytes.length > 32 ? " …" : ""}`;
}

export function headerText(value: string | null): string {
  if (value === null) return "null";
  const bytes = bytesOf(value);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return hexOf(bytes);
  }
}

export const bytesOf = (base64: string): Uint8Array => Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));

export const base64Of = (text: string): string =>
  btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(""));

export const hexOf = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(" ");

const ROW_BYTES = 16;

/** Offset, hex and printable characters, sixteen to a line. */
export function hexDump(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += ROW_BYTES) {
    const part = bytes.slice(at, at + ROW_BYTES);
    const printable = Array.from(part, (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "."));
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hexOf(part).padEnd(48)} ${printable.join("")}`);
  }
  return lines.join("\n");
}

/** Does the record show the searched text anywhere: key, value or headers? `needle` is lower case. */
export function recordMatches(record: LogRecord, needle: string): boolean {
  if (!needle) return true;
  const parts = [payloadText(record.key), payloadText(record.value), record.offset];
  const headers = record.headers.flatMap(({ name, value }) => [name, headerText(value)]);
  return [...parts, ...headers].some((part) => part.toLowerCase().includes(needle));
}
