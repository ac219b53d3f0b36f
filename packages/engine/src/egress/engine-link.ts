import { flushCompileCache } from 'node:module';
import type { EgressReport, ProcessConfig, ProcessOrder } from './egress-messages.ts';

/** How long a process that no engine supervises and no sandbox uses any more stays. */
const ABANDONED_AFTER_MS = 10 * 60_000;

/** What is dealt with here. */
type Answered = { readonly kind: 'recorded' | 'ping' };

/** The engine, as the resolver and the proxies see it. */
export interface EngineLink<Order> {
  report(message: EgressReport): void;
  /** Called with each order from now on. */
  listen(onOrder: (order: Exclude<Order, Answered>) => void): void;
  /** Called when the engine is gone for good. */
  onGone(call: () => void): void;
  /** A sandbox has use for this process, engine or not. */
  stay(): void;
}

/**
 * Waits for the configuration, gives up all privileges and serves. The process goes on while the engine is away, so that a restart of
 * the engine costs sandboxes nothing.
 */
export function serveEngine<Told extends { config: ProcessConfig; order: { readonly kind: string } }>(
  serve: (config: Told['config'], engine: EngineLink<Told['order'] | ProcessOrder>) => Promise<void>,
): void {
  process.on('uncaughtException', (error) => {
    send({ kind: 'failed', reason: error.stack ?? error.message }, () => process.exit(1));
  });
  // The engine holds the other end; when it is gone there is nothing to write to.
  process.stderr.on('error', () => undefined);
  process.once('message', (message) => {
    const config = message as Told['config']; // Our own parent sent it.
    // Now or never: later on we may not, and at the end we are killed.
    flushCompileCache();
    dropPrivileges(config.hostId);
    void serve(config, openLink<Told['order']>());
  });
}

function openLink<Order extends { readonly kind: string }>(): EngineLink<Order | ProcessOrder> {
  const abandoned = setTimeout(() => {
    if (process.connected) abandoned.refresh();
    else process.exit(0);
  }, ABANDONED_AFTER_MS);
  let isRecorded = false;
  process.on('disconnect', () => {
    // Of an engine that was killed before it wrote down which process this is: no other would ever end it.
    if (!isRecorded) process.exit(1);
  });
  return {
    report: (message) => send(message, () => undefined),
    listen: (onOrder) => {
      process.on('message', (message) => {
        const order = message as Order | ProcessOrder; // From our own parent too.
        if (isPing(order)) send({ kind: 'done', id: order.id, pins: [] }, () => undefined);
        else if (order.kind === 'recorded') isRecorded = true;
        else onOrder(order as Exclude<Order | ProcessOrder, Answered>);
      });
    },
    onGone: (call) => void process.once('disconnect', call),
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
function dropPrivileges(hostId: number): void {
  if (process.getuid?.() !== 0) return;
  process.setgroups?.([]);
  process.setgid?.(hostId);
  process.setuid?.(hostId);
}

function send(message: EgressReport, whenSent: () => void): void {
  if (process.connected) process.send?.(message, whenSent);
  else whenSent();
}
