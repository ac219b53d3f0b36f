import { once } from 'node:events';
import { createServer, isIP } from 'node:net';
import { errnoOf } from '@svc/contract/errno';
import { PlatformError } from '@svc/contract';
import type { CreateSandboxRequest } from '@svc/contract/rest';
import { bindUdp } from './bind-udp.ts';
import type { PortMapping } from '../store/port-mapping.ts';

type PublishedPort = NonNullable<NonNullable<CreateSandboxRequest['network']>['ports']>[number];

const LOOPBACK = '127.0.0.1';

/**
 * Checks the ports of a create. Loopback is always allowed; the operator allows further addresses.
 * @throws PlatformError `invalid_sandbox_config` naming the field
 */
export function checkPorts(
  ports: readonly PublishedPort[],
  publishAddresses: readonly string[],
): readonly PortMapping[] {
  const seen = new Set<string>();
  return ports.map((port, index) => {
    const { guest_port: guest, host_port: host, host_bind: bind = LOOPBACK, protocol = 'tcp' } = port;
    const field = `network.ports[${index}]`;
    if (bind !== LOOPBACK && !publishAddresses.includes(bind)) {
      const reason = `${bind} may not be published on; use ${[LOOPBACK, ...publishAddresses].join(' or ')}, or let the operator add it with --publish-address`;
      throw invalid(`${field}.host_bind`, isIP(bind) === 0 ? 'must be an IP address' : reason);
    }
    const key = `${protocol} ${bind} ${host}`;
    if (seen.has(key)) throw invalid(`${field}.host_port`, `${host} is published twice; keep one`);
    seen.add(key);
    return {
      host,
      guest,
      ...(bind === LOOPBACK ? {} : { bind }),
      ...(protocol === 'udp' ? { protocol } : {}),
    };
  });
}

/**
 * Finds conflicts now, before a start fails on them. A port may still be taken before the start.
 * @throws PlatformError `invalid_sandbox_config` naming the port
 */
export async function requireFreePorts(mappings: readonly PortMapping[]): Promise<void> {
  for (const { host, bind = LOOPBACK, protocol } of mappings) {
    try {
      await (protocol === 'udp' ? tryUdp(host, bind) : tryTcp(host, bind));
    } catch (error) {
      throw unavailable(host, bind, error);
    }
  }
}

async function tryTcp(port: number, host: string): Promise<void> {
  const server = createServer();
  try {
    server.listen({ host, port });
    await once(server, 'listening');
  } finally {
    server.close();
  }
}

async function tryUdp(port: number, address: string): Promise<void> {
  (await bindUdp({ address, port })).close();
}

function unavailable(port: number, bind: string, error: unknown): PlatformError {
  const reason = errnoOf(error) ?? 'unknown';
  const why = reason === 'EADDRINUSE' ? 'is in use' : `cannot be opened (${reason})`;
  const message = `Port ${port} of ${bind} ${why}; publish another host_port`;
  return new PlatformError('invalid_sandbox_config', message, {
    isConflict: true,
    details: { field: 'network.ports', host_port: port, host_bind: bind, reason },
    cause: error,
  });
}

function invalid(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_sandbox_config', `${field}: ${reason}`, { details: { field, reason } });
}
