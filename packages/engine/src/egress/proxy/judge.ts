import { hostOf } from './authority.ts';
import type { FirstFlight } from './first-flight.ts';
import type { Destination, RefusalReason, SandboxEgress } from './sandbox-egress.ts';

/** What becomes of a connection: it is carried on as it is, every request in it is read first, or it is refused. */
export type Judgement = 'carry' | 'read' | RefusalReason;

/** Judges a connection by where it goes and what it says first; null when it says nothing and waits for the server. */
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
  // Strict rules want a name in each request that can be read. The one at the beginning of TLS is a claim: what follows may be for others.
  const isClaim = rules.isStrict && isByName;
  const isPlainRead = readsPlainHttp && (flight?.kind === 'http' || flight?.kind === 'plainHttp2');
  if (!isIntercepted && !isClaim && !isPlainRead) return 'carry';
  if (!isIntercepted && flight?.kind === 'tls') return 'not_readable';
  return flight?.kind === 'http' || flight?.kind === 'tls' ? 'read' : 'not_readable';
}

/** The name that a connection claims to mean: `''` when it should have named one, undefined when it speaks nothing that has names. */
export function nameSaid(flight: FirstFlight | null): string | undefined {
  if (flight?.kind === 'tls') return flight.hello.serverName ?? '';
  if (flight?.kind === 'http') return hostOf(flight.host ?? '') ?? '';
  return undefined;
}
