// Offsets, counts and sizes are int64. They travel as decimal text and are computed as bigint: a JavaScript number
// would round them above 2^53.

export type Int64Text = string;

export const toBig = (text: Int64Text | number | bigint): bigint => BigInt(text);

export const formatCount = (value: Int64Text | number | bigint): string => grouped(toBig(value));

function grouped(value: bigint): string {
  const digits = (value < 0n ? -value : value).toString().replace(/\B(?=(\d{3})+$)/g, ",");
  return value < 0n ? `-${digits}` : digits;
}

export const sumOf = (values: Iterable<Int64Text>): bigint => {
  let total = 0n;
  for (const value of values) total += toBig(value);
  return total;
};

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"] as const;

export const formatBytes = (value: Int64Text | number | bigint): string => scaled(toBig(value), 1024n, BYTE_UNITS);

const COUNT_UNITS = ["", "k", "M", "G", "T", "P", "E"] as const;

/** Short form for tight places ("1.2 M"); the exact number belongs in a title beside it. */
export const formatCompact = (value: Int64Text | number | bigint): string =>
  scaled(toBig(value), 1000n, COUNT_UNITS).trimEnd();

function scaled(value: bigint, step: bigint, units: readonly string[]): string {
  const magnitude = value < 0n ? -value : value;
  let unit = 0;
  let divisor = 1n;
  while (unit < units.length - 1 && magnitude >= divisor * step) {
    divisor *= step;
    unit += 1;
  }
  const tenths = (magnitude * 10n) / divisor;
  const hasFraction = unit > 0 && tenths < 1000n;
  const number = hasFraction ? `${tenths / 10n}.${tenths % 10n}` : grouped(tenths / 10n);
  return `${value < 0n ? "-" : ""}${number} ${units[unit] ?? ""}`;
}

/** Where `value` lies between two bounds, 0 to 1; safe for any int64 because the division keeps five digits. */
export function fractionBetween(value: bigint, low: bigint, high: bigint): number {
  if (high <= low) return 1;
  const clamped = value < low ? low : value > high ? high : value;
  return Number(((clamped - low) * 100_000n) / (high - low)) / 100_000;
}
