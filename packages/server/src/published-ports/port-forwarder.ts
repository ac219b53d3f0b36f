import { errnoOf } from '@svc/contract/errno';
import { PlatformError, type ChannelClient } from '@svc/contract';
import type { Logger } from 'pino';
import type { PortMapping } from '../store/port-mapping.ts';
import type { MayEnter } from './ingress.ts';
import type { OpenPort } from './open-port.ts';
import { openTcpPort } from './tcp-port.ts';
import { openUdpPort } from './udp-port.ts';

type OpenChannel = (sandboxId: string, signal: AbortSignal) => Promise<ChannelClient>;

const OPEN_TIMEOUT_MS = 10_000;
const LOOPBACK = '127.0.0.1';

/**
 * Forwards ports of this host to services on the loopback of sandboxes.
 * - Visitors that `mayEnter` refuses are cut off without any data.
 * - `open` of a sandbox whose ports are open only changes who may enter from now on; `close` may be repeated.
 */
export class PortForwarder {
  readonly #openChannel: OpenChannel;
  readonly #logger: Logger;
  readonly #mayEnter = new Map<string, MayEnter>();
  readonly #ports = new Map<string, readonly OpenPort[]>();

  constructor(openChannel: OpenChannel, logger: Logger) {
    this.#openChannel = openChannel;
    this.#logger = logger;
  }

  /** @throws PlatformError `start_failed` when a port is taken; then none of them is open. */
  async open(sandboxId: string, mappings: readonly PortMapping[], mayEnter: MayEnter): Promise<void> {
    if (mappings.length === 0) return;
    this.#mayEnter.set(sandboxId, mayEnter);
    if (this.#ports.has(sandboxId)) return;
    const opened: OpenPort[] = [];
    try {
      for (const mapping of mappings) opened.push(await this.#openPort(sandboxId, mapping));
    } catch (error) {
      await Promise.all(opened.map((port) => port.close()));
      throw error;
    }
    this.#ports.set(sandboxId, opened);
  }

  async close(sandboxId: string): Promise<void> {
    const ports = this.#ports.get(sandboxId) ?? [];
    this.#ports.delete(sandboxId);
    this.#mayEnter.delete(sandboxId);
    await Promise.all(ports.map((port) => port.close()));
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#ports.keys()].map((sandboxId) => this.close(sandboxId)));
  }

  async #openPort(
    sandboxId: string,
    { host: port, guest: guestPort, bind = LOOPBACK, protocol }: PortMapping,
  ): Promise<OpenPort> {
    const openChannel = () => this.#openChannel(sandboxId, AbortSignal.timeout(OPEN_TIMEOUT_MS));
    const target = {
      sandboxId,
      guestPort,
      openChannel,
      logger: this.#logger,
      mayEnter: (source: string) =>
        this.#mayEnter.get(sandboxId)?.(source, guestPort, protocol ?? 'tcp') ?? false,
    };
    try {
      // SAFETY: loopback, or an address that the operator lets callers publish on; see publish-ports.ts.
      const place = { address: bind, port };
      return protocol === 'udp' ? await openUdpPort(place, target) : await openTcpPort(place, target);
    } catch (error) {
      const reason = errnoOf(error) ?? 'unknown';
      const message = `port ${port} of this host cannot be opened (${reason}); choose another one`;
      throw new PlatformError('start_failed', message, { details: { port, reason }, cause: error });
    }
  }
}
