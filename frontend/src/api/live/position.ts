// How far a tail has come in each partition, where to go on, and what was left out on the way.
import type { LogRecord } from "../types";
import type { Offsets, Start } from "./frames";

/** Offsets `from` to `to`, both included, that this tail did not get. */
export interface Gap {
  partition: number;
  from: bigint;
  to: bigint;
}

export class TailPosition {
  private readonly next = new Map<number, bigint>();
  private isResumable = true;

  /** Where to subscribe now: the wish of the user at first, after that the offset behind the last one received. */
  resumeStart(wished: Start): Start {
    if (this.next.size === 0) return wished;
    if (!this.isResumable) return "latest";
    return { offsets: Object.fromEntries([...this.next].map(([p, offset]) => [String(p), offset.toString()])) };
  }

  /** The place to go on is no longer in the log. False when there was none: then the wish itself was wrong. */
  loseResume(): boolean {
    this.isResumable = false;
    return this.next.size > 0;
  }

  /** Takes the server's positions; where it starts later than asked, retention has taken what is between. */
  onSubscribed(positions: Offsets): Gap[] {
    this.isResumable = true;
    return Object.entries(positions).flatMap(([p, offset]) => this.moveTo(Number(p), BigInt(offset)));
  }

  onRecords(records: readonly LogRecord[]): Gap[] {
    return records.flatMap(({ partition, offset }) => {
      const gaps = this.moveTo(partition, BigInt(offset));
      this.next.set(partition, BigInt(offset) + 1n);
      return gaps;
    });
  }

  private moveTo(partition: number, offset: bigint): Gap[] {
    const expected = this.next.get(partition);
    this.next.set(partition, offset);
    return expected !== undefined && offset > expected ? [{ partition, from: expected, to: offset - 1n }] : [];
  }
}
