import { InvalidArgumentError } from 'commander';

export interface Connection {
  readonly host: string;
  /** 0 for ICMP, which has no ports. */
  readonly port: number;
  readonly protocol: 'tcp' | 'udp' | 'icmpv4' | 'icmpv6';
}

const CONNECTION =
  /^(?:\[(?<bracketed>[0-9a-f:.]+)\]|(?<plain>[^:/[\]\s]+))(?::(?<port>\d{1,5}))?(?:\/(?<protocol>tcp|udp|icmpv4|icmpv6))?$/i;

/** `HOST:PORT`, `HOST:PORT/udp`, `HOST/icmpv4`; an IPv6 address in brackets. */
export function parseConnection(text: string): Connection {
  const { bracketed, plain, port, protocol = 'tcp' } = CONNECTION.exec(text)?.groups ?? {};
  const host = bracketed ?? plain;
  const lower = protocol.toLowerCase() as Connection['protocol'];
  const hasPorts = lower === 'tcp' || lower === 'udp';
  const number = Number(port ?? 0);
  const isLegal = hasPorts ? number >= 1 && number <= 65_535 : port === undefined;
  if (host === undefined || !isLegal)
    throw new InvalidArgumentError(
      'Give HOST:PORT, such as example.com:443, 10.0.0.7:53/udp or 10.0.0.7/icmpv4.',
    );
  return { host, port: number, protocol: lower };
}
