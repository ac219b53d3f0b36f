import { randomInt } from 'node:crypto';
import { SvcError, type CreateOptions, type Sandbox } from '@svc/sdk';
import type { PublishedPort } from '../arguments/port.ts';
import { report } from '../terminal/print.ts';
import { portsOf } from './spec-view.ts';

/** Below the ephemeral ports of the kernel and above the well-known ones. */
const FIRST_PORT = 20_000;
const LAST_PORT = 29_999;
const MOST_TRIES = 20;

/**
 * Creates a sandbox that publishes ports, and returns the chosen host ports where none was given. The server may be on another
 * machine, so free ports are found by trying.
 */
export async function withChosenPorts<Made extends CreateOptions>(
  options: Made,
  published: readonly PublishedPort[] | undefined,
  make: (options: Made) => Promise<Sandbox>,
): Promise<Sandbox> {
  if (published === undefined) return await make(options);
  const isChosen = published.some(({ host_port: host }) => host === null);
  for (let tries = 1; ; tries += 1) {
    const ports = published.map((port) => ({
      ...port,
      host_port: port.host_port ?? randomInt(FIRST_PORT, LAST_PORT + 1),
    }));
    try {
      const sandbox = await make({ ...options, network: { ...options.network, ports } });
      if (isChosen) reportPorts(sandbox);
      return sandbox;
    } catch (error) {
      const taken = SvcError.is(error, 'invalid_sandbox_config') ? error.details?.['host_port'] : undefined;
      const isOurs = ports.some(
        ({ host_port: port }, index) => port === taken && published[index]?.host_port === null,
      );
      if (!isOurs || tries === MOST_TRIES) throw error;
    }
  }
}

function reportPorts({ info }: Sandbox): void {
  for (const { guest_port: guest, protocol, host_bind: bind, host_port: host } of portsOf(info))
    report(`${guest}/${protocol} -> ${bind.includes(':') ? `[${bind}]` : bind}:${host}`);
}
