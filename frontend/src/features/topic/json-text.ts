// Shows JSON without parsing it into JavaScript values: numbers keep every digit that was sent. Pure.

export type TokenKind = "key" | "string" | "number" | "literal" | "punctuation" | "space";

export interface Token {
  kind: TokenKind;
  text: string;
}

const SCANNER = /("(?:[^"\\]|\\.)*")|(-?\d[\d.eE+-]*)|(true|false|null)|([{}[\],:])|(\s+)/gy;
const LENGTH_MAX = 200_000;

/** Indented tokens, or null when the text is not JSON-like or too long to colour. */
export function prettyTokens(text: string): Token[] | null {
  if (text.length > LENGTH_MAX) return null;
  const raw = scan(text);
  return raw && indent(raw);
}

function scan(text: string): Token[] | null {
  const tokens: Token[] = [];
  SCANNER.lastIndex = 0;
  while (SCANNER.lastIndex < text.length) {
    const match = SCANNER.exec(text);
    if (!match) return null;
    const [whole, string, number, literal, punctuation] = match;
    if (string) tokens.push({ kind: "string", text: whole });
    else if (number) tokens.push({ kind: "number", text: whole });
    else if (literal) tokens.push({ kind: "literal", text: whole });
    else if (punctuation) tokens.push({ kind: "punctuation", text: whole });
  }
  return tokens;
}

function indent(tokens: Token[]): Token[] {
  const out: Token[] = [];
  let depth = 0;
  const breakLine = (): void => void out.push({ kind: "space", text: `\n${"  ".repeat(depth)}` });
  tokens.forEach((token, index) => {
    const next = tokens[index + 1]?.text;
    const previous = tokens[index - 1]?.text;
    const isKey = token.kind === "string" && next === ":";
    if (isClosing(token.text)) {
      depth -= 1;
      if (!isOpening(previous)) breakLine();
    }
    out.push(isKey ? { kind: "key", text: token.text } : token);
    if (token.kind !== "punctuation") return;
    if (isOpening(token.text)) {
      depth += 1;
      if (!isClosing(next)) breakLine();
    } else if (token.text === ",") breakLine();
    else if (token.text === ":") out.push({ kind: "space", text: " " });
  });
  return out;
}

const isOpening = (text: string | undefined): boolean => text === "{" || text === "[";
const isClosing = (text: string | undefined): boolean => text === "}" || text === "]";
