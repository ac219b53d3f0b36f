import { hostOf } from './authority.ts';
import type { FirstFlight } from './first-flight.ts';
import type { Destination, RefusalReason, SandboxEgress } from './sandbox-egress.ts';

/** The treatment of a connection: passed through, read request by request, or refused. */
export type Judgement = 'carry' | 'read' | RefusalReason;

/** Judges a connection by its destination and first bytes; null when the client is silent and waits for the server. */
export function judge(
  {
    rules,
    interceptedPorts,
    readsPlainHttp,
    isBypassed,
  }: Omit<SandboxEgress, 'maxConnections' | 'intercept'>,
  destination: Destination,
  flight: FirstFlight | null,
): Judgement {
  if (flight?.kind === 'malformed') return 'malformed';
  const said = nameSaid(flight);
  const { action, isByName } = rules.decide(destination, said);
  if (action === 'deny') return 'policy';
  const isIntercepted =
    interceptedPorts.has(destination.port) &&
    !(flight?.kind === 'tls' && said !== undefined && isBypassed(said));
  // Strict rules check the name in each readable request. SNI is only a claim: the requests in the connection may name other hosts.
  const isClaim = rules.isStrict && isByName;
  const isPlainRead = readsPlainHttp && (flight?.kind === 'http' || flight?.kind === 'plainHttp2');
  if (!isIntercepted && !isClaim && !isPlainRead) return 'carry';
  if (!isIntercepted && flight?.kind === 'tls') return 'not_readable';
  return flight?.kind === 'http' || flight?.kind === 'tls' ? 'read' : 'not_readable';
}

/** The name that a connection claims: `''` when it should have one and has none, undefined when its protocol has no names. */
export function nameSaid(flight: FirstFlight | null): string | undefined {
  if (flight?.kind === 'tls') return flight.hello.serverName ?? '';
  if (flight?.kind === 'http') return hostOf(flight.host ?? '') ?? '';
  return undefined;
}
