import { parseBoundedJson } from '@svc/contract/bounded-json';
import type { Decider, DecisionKind, StoppedRequest } from '@svc/contract/orchestrator';
import { parseAddress } from '../policy/address.ts';
import type { EgressReport, Pin } from './egress-messages.ts';

/** Fits all addresses that a sandbox has resolved. */
export const MAX_REPORT_BYTES = 2 * 1024 * 1024;

/** A validator. Reports are read from the start of the engine on; a validation library would be a third of the code loaded by then. */
type Check = (value: unknown) => boolean;

const text =
  (maxLength: number): Check =>
  (value) =>
    typeof value === 'string' && value.length <= maxLength;
const whole =
  (least: number, most: number): Check =>
  (value) =>
    Number.isInteger(value) && Number(value) >= least && Number(value) <= most;
const oneOf =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value);
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const listOf =
  (check: Check, maxLength: number): Check =>
  (value) =>
    Array.isArray(value) && value.length <= maxLength && value.every(check);
const shaped =
  (fields: Readonly<Record<string, Check>>): Check =>
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    Object.entries(fields).every(([name, check]) => check((value as Record<string, unknown>)[name]));

const KINDS = ['dns', 'tcp', 'tls', 'http'] as const satisfies readonly DecisionKind[];
/** Decisions that these processes may report; the others are made by the packet filter. */
const DECIDERS = [
  'rule',
  'default',
  'name',
  'too_many_connections',
  'rebind_protection',
  'secret',
  'not_readable',
  'not_one_host',
  'malformed',
  'upstream_unreachable',
  'upstream_not_verified',
] as const satisfies readonly Decider[];

const id = whole(1, Number.MAX_SAFE_INTEGER);
const count = whole(0, 2 ** 32);
const name = text(1024);
const addressText = text(45);
const pins = listOf(shaped({ name, address: addressText, seconds: whole(0, 2 ** 31) }), 4096);
const secret = shaped({
  action: oneOf('block', 'block_and_log', 'block_and_terminate'),
  method: name,
  path: name,
  envVars: listOf(name, 1024),
} satisfies Record<keyof StoppedRequest, Check>);
const decision = shaped({
  kind: oneOf(...KINDS),
  verdict: oneOf('allow', 'deny'),
  host: orNull(name),
  address: orNull(addressText),
  port: orNull(whole(0, 0xffff)),
  protocol: oneOf('tcp', 'udp'),
  decidedBy: oneOf(...DECIDERS),
  rule: orNull(whole(0, 0xffff)),
  secret: optional(secret),
});
const port = whole(1, 0xffff);

const REPORTS: Readonly<Record<EgressReport['kind'], Check>> = {
  listening: shaped({ ports: shaped({ ipv4: port, ipv6: orNull(port) }) }),
  failed: shaped({ reason: text(65_536) }),
  done: shaped({ id, pins }),
  pin: shaped({ id, client: name, pins }),
  decided: shaped({
    client: name,
    report: shaped({ decisions: listOf(shaped({ decision, count }), 64), leftOut: count }),
  }),
};

/** A report in which addresses are still written as text. */
type WrittenReport = EgressReport extends infer Each
  ? Each extends { readonly pins: unknown }
    ? Omit<Each, 'pins'> & { readonly pins: readonly WrittenPin[] }
    : Each
  : never;
type WrittenPin = Omit<Pin, 'address'> & { readonly address: string };

/**
 * Parses and validates a report of a process that reads hostile bytes and may be compromised.
 * @throws Error when it is not a valid report
 */
export function readReport(bytes: Buffer): EgressReport {
  const report: unknown = parseBoundedJson(bytes);
  if (!isReport(report)) throw new Error('A message is no report');
  return 'pins' in report ? { ...report, pins: report.pins.map(readPin) } : report;
}

function isReport(value: unknown): value is WrittenReport {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return false;
  return Object.entries(REPORTS).some(([kind, check]) => value.kind === kind && check(value));
}

function readPin({ name: host, address, seconds }: WrittenPin): Pin {
  const parsed = parseAddress(address);
  if (parsed === null) throw new Error('A message has an address that is none');
  return { name: host, address: parsed, seconds };
}
