// The live connection for the page: carries out what core.ts decides, with a real socket and real timers.
import { ApiError, request } from "../http";
import { type Effect, LiveCore, type LiveEvent, type Phase, type TailRequest } from "./core";
import type { Credit, ServerFrame, WatchTarget } from "./frames";

type Listener = (event: LiveEvent) => void;

const HEARTBEAT_DEFAULT_MS = 20_000;

export interface LiveStatus {
  phase: Phase;
  stopReason: string | null;
  latencyMs: number | null;
}

export class LiveClient {
  private readonly core = new LiveCore(Math.random);
  private readonly listeners = new Map<string, Listener>();
  private readonly statusListeners = new Set<() => void>();
  private status: LiveStatus = { phase: "idle", stopReason: null, latencyMs: null };
  private socket: WebSocket | null = null;
  private reconnectTimer = 0;
  private heartbeatTimer = 0;
  private lastHeardMs = 0;
  private nextId = 1;

  start = (): void => this.carryOut(this.core.start());

  stop = (): void => {
    window.clearTimeout(this.reconnectTimer);
    this.carryOut(this.core.stop());
  };

  restart = (): void => {
    this.stop();
    this.start();
  };

  tail(request: TailRequest, listener: Listener): TailHandle {
    const id = this.register("t", listener);
    this.carryOut(this.core.addTail(id, request));
    return {
      grant: (credit) => this.carryOut(this.core.grant(id, credit)),
      close: () => this.unregister(id),
    };
  }

  /** Live rows of one topic's partitions, of one group, or of all groups. Returns the way out. */
  watch(target: WatchTarget, listener: Listener): () => void {
    const id = this.register("w", listener);
    this.carryOut(this.core.addWatch(id, target));
    return () => this.unregister(id);
  }

  getStatus = (): LiveStatus => this.status;

  onStatus = (listener: () => void): (() => void) => {
    this.statusListeners.add(listener);
    return () => this.statusListeners.delete(listener);
  };

  private register(prefix: string, listener: Listener): string {
    const id = `${prefix}${this.nextId}`;
    this.nextId += 1;
    this.listeners.set(id, listener);
    return id;
  }

  private unregister(id: string): void {
    this.listeners.delete(id);
    this.carryOut(this.core.remove(id));
  }

  private carryOut(effects: Effect[]): void {
    for (const effect of effects) this.perform(effect);
    this.publish(this.core.phase === "live" ? this.status.latencyMs : null);
  }

  private perform(effect: Effect): void {
    switch (effect.do) {
      case "ask-ticket":
        return void this.askTicket();
      case "open":
        return this.open();
      case "send":
        return this.socket?.send(JSON.stringify(effect.frame));
      case "close":
        return this.closeSocket();
      case "wait":
        this.reconnectTimer = window.setTimeout(this.start, effect.ms);
        return;
      case "retry":
        window.setTimeout(() => this.carryOut(this.core.retry(effect.id)), effect.ms);
        return;
      case "tell":
        return this.listeners.get(effect.id)?.(effect.event);
    }
  }

  private async askTicket(): Promise<void> {
    try {
      const { ticket } = await request<{ ticket: string }>("/ws-tickets", { method: "POST", body: {} });
      this.carryOut(this.core.onTicket(ticket));
    } catch (error) {
      const isSignedOut = error instanceof ApiError && (error.status === 401 || error.status === 403);
      this.carryOut(this.core.onTicketRefused(isSignedOut));
    }
  }

  private open(): void {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}/api/v1/ws`, "highwater.v1.json");
    this.socket = socket;
    socket.onopen = () => this.carryOut(this.core.onOpen());
    socket.onmessage = (message) => this.onMessage(message.data as string);
    socket.onclose = (event) => {
      if (this.socket === socket) this.onClosed(event.code, event.reason);
    };
  }

  private onMessage(text: string): void {
    this.lastHeardMs = performance.now();
    const frame = JSON.parse(text) as ServerFrame;
    if (frame.type === "welcome") this.startHeartbeat(frame.heartbeat_ms ?? HEARTBEAT_DEFAULT_MS);
    if (frame.type === "pong") return this.publish(Math.max(0, Math.round(performance.now() - frame.t)));
    this.carryOut(this.core.onFrame(frame));
  }

  private onClosed(code: number, reason: string): void {
    this.closeSocket();
    this.carryOut(this.core.onClose(code, reason));
  }

  private closeSocket(): void {
    window.clearInterval(this.heartbeatTimer);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  private startHeartbeat(heartbeatMs: number): void {
    const beat = (): void => {
      const silentMs = performance.now() - this.lastHeardMs;
      if (silentMs > heartbeatMs * 2) return this.onClosed(1006, "silent");
      this.socket?.send(JSON.stringify({ type: "ping", t: Math.round(performance.now()) }));
    };
    window.clearInterval(this.heartbeatTimer);
    this.heartbeatTimer = window.setInterval(beat, Math.min(heartbeatMs, HEARTBEAT_DEFAULT_MS));
    beat();
  }

  private publish(latencyMs: number | null): void {
    const { phase, stopReason } = this.core;
    if (this.status.phase === phase && this.status.latencyMs === latencyMs) return;
    this.status = { phase, stopReason, latencyMs };
    for (const listener of this.statusListeners) listener();
  }
}

export interface TailHandle {
  grant: (credit: Credit) => void;
  close: () => void;
}

/** One socket serves the whole page. */
export const live = new LiveClient();
