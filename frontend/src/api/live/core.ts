// The live connection as a pure state machine: events in, effects out. No socket, timer, clock or randomness in here;
// client.ts carries the effects out. After a reconnect every tail goes on at the offset after the last one it got.
import type { Group, GroupPage, LogRecord, PartitionRow } from "../types";
import type { ClientFrame, Credit, Offsets, ServerFrame, Start, WatchTarget } from "./frames";
import { type Gap, TailPosition } from "./position";

export type Phase = "idle" | "asking" | "opening" | "greeting" | "live" | "waiting" | "stopped";

const NEXT_PHASES: Record<Phase, readonly Phase[]> = {
  idle: ["idle", "asking"],
  asking: ["opening", "waiting", "stopped", "idle"],
  opening: ["greeting", "waiting", "stopped", "idle"],
  greeting: ["live", "waiting", "stopped", "idle"],
  live: ["waiting", "stopped", "idle"],
  waiting: ["asking", "idle"],
  stopped: ["asking", "idle"],
};

export type Effect =
  | { do: "ask-ticket" }
  | { do: "open"; ticket: string }
  | { do: "send"; frame: ClientFrame }
  | { do: "close" }
  | { do: "wait"; ms: number }
  | { do: "retry"; id: string; ms: number }
  | { do: "tell"; id: string; event: LiveEvent };

export type LiveEvent =
  | { kind: "subscribed"; positions: Offsets }
  | { kind: "records"; records: LogRecord[]; gaps: Gap[]; remaining: Partial<Credit> }
  | { kind: "caught-up" }
  | { kind: "partitions"; rows: PartitionRow[] }
  | { kind: "group"; page: GroupPage }
  | { kind: "groups"; rows: Group[] }
  | { kind: "interrupted" }
  | { kind: "failed"; message: string; willRetry: boolean };

export interface TailRequest {
  topic: string;
  start: Start;
  partitions?: number[];
  credit: Credit;
}

interface Tail {
  kind: "tail";
  request: TailRequest;
  position: TailPosition;
  sub: string | null;
}

interface Watch {
  kind: "watch";
  target: WatchTarget;
  sub: string | null;
}

type Subscription = Tail | Watch;

const BACKOFF_FIRST_MS = 500;
const BACKOFF_MAX_MS = 15_000;
const RETRY_SUBSCRIPTION_MS = 1_500;
const CLOSE_DRAINING = 4503;
/** 44xx means "do not come back as you are". A slow hello or a quota passes; for a refused ticket we bring a new one. */
const RETRYABLE_CLOSES = [4401, 4408, 4429];
const isFinalClose = (code: number): boolean => code >= 4400 && code < 4500 && !RETRYABLE_CLOSES.includes(code);
const isOutOfRange = (code: string | number): boolean => /out_of_range/i.test(String(code));

const watchesTopic = (subscription: Subscription, topic: string): boolean =>
  subscription.kind === "watch" && "topic" in subscription.target && subscription.target.topic === topic;

export class LiveCore {
  phase: Phase = "idle";
  stopReason: string | null = null;
  private attempt = 0;
  private ticket = "";
  private readonly subscriptions = new Map<string, Subscription>();

  /** `random` gives 0 to 1 and spreads reconnects, so that a restarted server is not met by all pages at once. */
  constructor(private readonly random: () => number) {}

  start(): Effect[] {
    if (this.phase !== "idle" && this.phase !== "stopped" && this.phase !== "waiting") return [];
    this.moveTo("asking");
    return [{ do: "ask-ticket" }];
  }

  stop(): Effect[] {
    this.moveTo("idle");
    this.attempt = 0;
    this.forgetServerSide();
    return [{ do: "close" }];
  }

  onTicket(ticket: string): Effect[] {
    if (this.phase !== "asking") return [];
    this.moveTo("opening");
    this.ticket = ticket;
    return [{ do: "open", ticket }];
  }

  onTicketRefused(isSignedOut: boolean): Effect[] {
    if (this.phase !== "asking") return [];
    return isSignedOut ? this.giveUp("You are signed out.") : this.backOff();
  }

  onOpen(): Effect[] {
    if (this.phase !== "opening") return [];
    this.moveTo("greeting");
    return [{ do: "send", frame: { type: "hello", token: this.ticket, client: "dashboard" } }];
  }

  onClose(code: number, reason: string): Effect[] {
    if (this.phase === "idle" || this.phase === "waiting" || this.phase === "stopped") return [];
    const told = this.interruptAll();
    if (isFinalClose(code)) return [...told, ...this.giveUp(reason || `The server closed the connection (${code}).`)];
    if (code === CLOSE_DRAINING) this.attempt = 0;
    return [...told, ...this.backOff()];
  }

  onFrame(frame: ServerFrame): Effect[] {
    switch (frame.type) {
      case "welcome":
        return this.onWelcome();
      case "subscribed":
        return this.onSubscribed(frame.id, frame.sub, frame.positions);
      case "records":
        return this.onRecords(frame);
      case "caught_up":
        return this.tellSub(frame.sub, { kind: "caught-up" });
      case "partitions":
        return this.onPartitions(frame.sub, frame.topic, frame.data);
      case "group":
        return this.tellSub(frame.sub, { kind: "group", page: frame.data });
      case "groups":
        return this.tellSub(frame.sub, { kind: "groups", rows: frame.data });
      case "error":
        return this.onError(frame);
      default:
        return [];
    }
  }

  addTail(id: string, request: TailRequest): Effect[] {
    return this.add(id, { kind: "tail", request, position: new TailPosition(), sub: null });
  }

  addWatch(id: string, target: WatchTarget): Effect[] {
    return this.add(id, { kind: "watch", target, sub: null });
  }

  remove(id: string): Effect[] {
    const subscription = this.subscriptions.get(id);
    this.subscriptions.delete(id);
    if (!subscription?.sub || this.phase !== "live") return [];
    return [{ do: "send", frame: { type: "unsubscribe", sub: subscription.sub } }];
  }

  /** Lets the server send that much more. Does nothing between connections: a new subscription brings its own credit. */
  grant(id: string, credit: Credit): Effect[] {
    const subscription = this.subscriptions.get(id);
    if (!subscription?.sub || this.phase !== "live") return [];
    return [{ do: "send", frame: { type: "credit", sub: subscription.sub, ...credit } }];
  }

  retry(id: string): Effect[] {
    const subscription = this.subscriptions.get(id);
    return subscription && !subscription.sub && this.phase === "live" ? [this.subscribeEffect(id, subscription)] : [];
  }

  private add(id: string, subscription: Subscription): Effect[] {
    this.subscriptions.set(id, subscription);
    return this.phase === "live" ? [this.subscribeEffect(id, subscription)] : [];
  }

  private onWelcome(): Effect[] {
    if (this.phase !== "greeting") return [];
    this.moveTo("live");
    this.attempt = 0;
    return [...this.subscriptions].map(([id, subscription]) => this.subscribeEffect(id, subscription));
  }

  private subscribeEffect(id: string, subscription: Subscription): Effect {
    if (subscription.kind === "watch") return { do: "send", frame: { type: "watch", id, ...subscription.target } };
    const { topic, start, partitions, credit } = subscription.request;
    const resumed = subscription.position.resumeStart(start);
    const frame: ClientFrame = { type: "subscribe", id, topic, start: resumed, credit };
    return { do: "send", frame: partitions ? { ...frame, partitions } : frame };
  }

  private onSubscribed(id: string, sub: string, positions: Offsets | undefined): Effect[] {
    const subscription = this.subscriptions.get(id);
    if (!subscription) return [{ do: "send", frame: { type: "unsubscribe", sub } }];
    subscription.sub = sub;
    const gaps = subscription.kind === "tail" && positions ? subscription.position.onSubscribed(positions) : [];
    const told: Effect[] = [{ do: "tell", id, event: { kind: "subscribed", positions: positions ?? {} } }];
    const missed: LiveEvent = { kind: "records", records: [], gaps, remaining: {} };
    return gaps.length ? [...told, { do: "tell", id, event: missed }] : told;
  }

  private onRecords(frame: Extract<ServerFrame, { type: "records" }>): Effect[] {
    const found = this.bySub(frame.sub);
    if (found?.[1].kind !== "tail") return [];
    const [id, tail] = found;
    const gaps = tail.position.onRecords(frame.batch);
    const told = frame.remaining_credit ?? {};
    const remaining = typeof told === "number" ? { records: told } : told;
    return [{ do: "tell", id, event: { kind: "records", records: frame.batch, gaps, remaining } }];
  }

  private onPartitions(sub: string, topic: string, rows: PartitionRow[]): Effect[] {
    const found = this.bySub(sub) ?? [...this.subscriptions].find(([, each]) => watchesTopic(each, topic));
    return found ? [{ do: "tell", id: found[0], event: { kind: "partitions", rows } }] : [];
  }

  private onError(frame: Extract<ServerFrame, { type: "error" }>): Effect[] {
    const id = frame.id ?? (frame.sub === undefined ? undefined : this.bySub(frame.sub)?.[0]);
    const subscription = id === undefined ? undefined : this.subscriptions.get(id);
    if (id === undefined || !subscription) return [];
    subscription.sub = null;
    // Retention, or a topic made anew, took the place where we wanted to go on: go on at the end, and mark the gap.
    const isLost = subscription.kind === "tail" && isOutOfRange(frame.code) && subscription.position.loseResume();
    const willRetry = frame.retryable === true || isLost;
    const told: Effect = { do: "tell", id, event: { kind: "failed", message: frame.message, willRetry } };
    return willRetry ? [told, { do: "retry", id, ms: RETRY_SUBSCRIPTION_MS }] : [told];
  }

  private bySub(sub: string): [string, Subscription] | undefined {
    return [...this.subscriptions].find(([, subscription]) => subscription.sub === sub);
  }

  private tellSub(sub: string, event: LiveEvent): Effect[] {
    const found = this.bySub(sub);
    return found ? [{ do: "tell", id: found[0], event }] : [];
  }

  private interruptAll(): Effect[] {
    this.forgetServerSide();
    return [...this.subscriptions.keys()].map((id) => ({ do: "tell", id, event: { kind: "interrupted" } }));
  }

  private forgetServerSide(): void {
    for (const subscription of this.subscriptions.values()) subscription.sub = null;
  }

  private backOff(): Effect[] {
    this.moveTo("waiting");
    const ceiling = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** this.attempt);
    this.attempt += 1;
    return [{ do: "wait", ms: Math.round(ceiling * (0.5 + this.random() / 2)) }];
  }

  private giveUp(reason: string): Effect[] {
    this.moveTo("stopped");
    this.stopReason = reason;
    return [];
  }

  private moveTo(phase: Phase): void {
    if (phase !== "idle" && !NEXT_PHASES[this.phase].includes(phase)) {
      throw new Error(`live connection: ${this.phase} -> ${phase}`);
    }
    this.phase = phase;
  }
}
