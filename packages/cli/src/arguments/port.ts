import { InvalidArgumentError } from 'commander';

export interface PublishedPort {
  readonly guest_port: number;
  readonly host_port: number;
  readonly host_bind?: string;
  readonly protocol: 'tcp' | 'udp';
}

const PORT =
  /^(?:(?<bind>\[[0-9a-f:]+\]|[0-9.]+):)?(?<host>\d{1,5}):(?<guest>\d{1,5})(?:\/(?<protocol>tcp|udp))?$/i;

/** `HOST:GUEST`, `ADDRESS:HOST:GUEST`, either with `/udp`; given any number of times. */
export function collectPort(text: string, earlier: readonly PublishedPort[] = []): readonly PublishedPort[] {
  const { bind, host, guest, protocol = 'tcp' } = PORT.exec(text)?.groups ?? {};
  const ports = [host, guest].map(Number);
  if (host === undefined || ports.some((port) => port < 1 || port > 65_535))
    throw new InvalidArgumentError('Give HOST:GUEST, such as 8080:80 or 127.0.0.1:5353:53/udp.');
  const [host_port = 0, guest_port = 0] = ports;
  const address = bind === undefined ? {} : { host_bind: bind.replace(/^\[|\]$/g, '') };
  return [
    ...earlier,
    { guest_port, host_port, ...address, protocol: protocol.toLowerCase() === 'udp' ? 'udp' : 'tcp' },
  ];
}

/** One port of a sandbox. */
export function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535) throw new InvalidArgumentError('Give a port from 1 to 65535.');
  return port;
}
