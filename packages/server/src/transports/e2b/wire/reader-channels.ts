import type { ChannelClient } from '@svc/contract';

/** As long as a program may pause between two commands. */
const KEEP_MS = 30_000;

interface Idle {
  readonly channel: ChannelClient;
  readonly timer: NodeJS.Timeout;
}

/**
 * Connections to sandboxes that their readers have left, one of each sandbox, for the next command: opening one takes longer than the
 * command. Each serves one reader at a time.
 */
export class ReaderChannels {
  readonly #idle = new Map<string, Idle>();

  take(sandboxId: string): ChannelClient | undefined {
    const idle = this.#idle.get(sandboxId);
    if (idle !== undefined) this.#forget(sandboxId, idle);
    return idle?.channel;
  }

  keep(sandboxId: string, channel: ChannelClient): void {
    if (this.#idle.has(sandboxId)) return channel.close();
    const timer = setTimeout(() => channel.close(), KEEP_MS).unref();
    const idle = { channel, timer };
    this.#idle.set(sandboxId, idle);
    // Also when its sandbox ends.
    void channel.closed.then(() => this.#forget(sandboxId, idle));
  }

  close(): void {
    for (const { channel } of this.#idle.values()) channel.close();
  }

  #forget(sandboxId: string, idle: Idle): void {
    clearTimeout(idle.timer);
    if (this.#idle.get(sandboxId) === idle) this.#idle.delete(sandboxId);
  }
}
