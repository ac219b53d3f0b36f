import { flushCompileCache } from 'node:module';
import { Socket } from 'node:net';
import { deserialize } from 'node:v8';
import {
  LINK_DESCRIPTOR,
  type EgressReport,
  type ProcessConfig,
  type ProcessOrder,
} from './egress-messages.ts';
import { frame, LengthFrames } from './length-frames.ts';
import { writeReport } from './write-report.ts';

/** A process that no engine supervises and no sandbox uses ends after this time. */
const ABANDONED_AFTER_MS = 10 * 60_000;
/** The engine is trusted, so its messages have no limit. */
const MAX_ORDER_BYTES = 2 ** 32 - 1;
const MAX_REASON_CHARACTERS = 10_000;

/** Orders that are handled here. */
type Answered = { readonly kind: 'recorded' | 'ping' };

/** The connection of the resolver or a proxy to the engine. */
export interface EngineLink<Order> {
  report(message: EgressReport): void;
  /** Called with each order from now on. */
  listen(onOrder: (order: Exclude<Order, Answered>) => void): void;
  /** Called when the engine is gone for good. */
  onGone(call: () => void): void;
  /** Called on each use by a sandbox: postpones the end of a process without an engine. */
  stay(): void;
}

/** The socket to the engine. Ends the process where there is none. */
function openLine(): Socket {
  try {
    return new Socket({ fd: LINK_DESCRIPTOR, readable: true, writable: true });
  } catch {
    process.stderr.write('The engine starts this program; to start an engine: svc engine start\n');
    return process.exit(1);
  }
}

/**
 * Waits for the configuration, drops all privileges and serves. The process keeps running without an engine, so that a restart of the
 * engine does not interrupt sandboxes.
 */
export function serveEngine<Messages extends { config: ProcessConfig; order: { readonly kind: string } }>(
  serve: (config: Messages['config'], engine: EngineLink<Messages['order'] | ProcessOrder>) => Promise<void>,
): void {
  const line = openLine();
  const send = (message: EgressReport, whenSent?: () => void) => {
    if (line.writable) line.write(frame(writeReport(message), 4), whenSent);
    else whenSent?.();
  };
  process.on('uncaughtException', (error) => {
    const reason = (error.stack ?? error.message).slice(0, MAX_REASON_CHARACTERS);
    send({ kind: 'failed', reason }, () => process.exit(1));
  });
  // The engine holds the other ends; writes fail once it is gone.
  process.stderr.on('error', () => undefined);
  line.on('error', () => undefined);
  let onOrder: (order: unknown) => void = (first) => {
    const config = first as Messages['config']; // Our own parent sent it.
    // Flushed now: the new user may not write there, and the process is killed at its end.
    flushCompileCache();
    dropPrivileges(config);
    const link = openLink<Messages['order']>(line, send);
    onOrder = link.obey;
    void serve(config, link);
  };
  const frames = new LengthFrames(MAX_ORDER_BYTES, 4);
  line.on('data', (chunk) => {
    for (const message of frames.push(chunk) ?? []) onOrder(deserialize(message));
  });
}

function openLink<Order extends { readonly kind: string }>(
  line: Socket,
  report: (message: EgressReport) => void,
): EngineLink<Order | ProcessOrder> & { readonly obey: (order: unknown) => void } {
  const abandoned = setTimeout(() => {
    if (line.writable) abandoned.refresh();
    else process.exit(0);
  }, ABANDONED_AFTER_MS);
  let isRecorded = false;
  line.once('close', () => {
    // An engine that was killed before it recorded this process: no later engine would find and end it.
    if (!isRecorded) process.exit(1);
  });
  let onOrder: (order: Exclude<Order | ProcessOrder, Answered>) => void = () => undefined;
  return {
    report: (message) => report(message),
    listen: (call) => (onOrder = call),
    obey: (message) => {
      const order = message as Order | ProcessOrder; // From our own parent too.
      if (isPing(order)) report({ kind: 'done', id: order.id, pins: [] });
      else if (order.kind === 'recorded') isRecorded = true;
      else onOrder(order as Exclude<Order | ProcessOrder, Answered>);
    },
    onGone: (call) => void line.once('close', call),
    stay: () => void abandoned.refresh(),
  };
}

function isPing(order: { readonly kind: string }): order is Extract<ProcessOrder, { kind: 'ping' }> {
  return order.kind === 'ping';
}

/**
 * SAFETY: the modules are loaded as root, since the program may live in a folder only root can read; nothing of a sandbox
 * has been read yet. setuid away from 0 clears all capabilities of every thread, and the parent set no_new_privs.
 */
function dropPrivileges({ hostId, groupId }: ProcessConfig): void {
  if (process.getuid?.() !== 0) return;
  process.setgroups?.([]);
  process.setgid?.(groupId);
  process.setuid?.(hostId);
}
