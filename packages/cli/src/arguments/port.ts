import { InvalidArgumentError } from 'commander';

export interface PublishedPort {
  readonly guest_port: number;
  /** Null: any free port. */
  readonly host_port: number | null;
  readonly host_bind?: string;
  readonly protocol: 'tcp' | 'udp';
}

const PORT =
  /^(?:(?:(?<bind>\[[0-9a-f:]+\]|[0-9.]+):)?(?<host>\d{0,5}):)?(?<guest>\d{1,5})(?:\/(?<protocol>tcp|udp))?$/i;

/** `GUEST`, `HOST:GUEST`, `ADDRESS:HOST:GUEST`, `ADDRESS::GUEST`, optionally with `/udp`; repeatable. */
export function collectPort(text: string, earlier: readonly PublishedPort[] = []): readonly PublishedPort[] {
  const { bind, host = '', guest, protocol = 'tcp' } = PORT.exec(text)?.groups ?? {};
  const guest_port = Number(guest);
  const host_port = host === '' ? null : Number(host);
  if (guest === undefined || ![guest_port, host_port ?? 1].every(isPort))
    throw new InvalidArgumentError(
      'Give HOST:GUEST, such as 8080:80 or 127.0.0.1:5353:53/udp, or GUEST alone for any port of the host.',
    );
  const address = bind === undefined ? {} : { host_bind: bind.replace(/^\[|\]$/g, '') };
  return [
    ...earlier,
    { guest_port, host_port, ...address, protocol: protocol.toLowerCase() === 'udp' ? 'udp' : 'tcp' },
  ];
}

/** One port of a sandbox. */
export function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (!isPort(port)) throw new InvalidArgumentError('Give a port from 1 to 65535.');
  return port;
}

function isPort(number: number): boolean {
  return number >= 1 && number <= 65_535;
}
