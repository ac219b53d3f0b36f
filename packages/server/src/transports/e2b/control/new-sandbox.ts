import { randomBytes } from 'node:crypto';
import type { CreateSandboxRequest } from '@svc/contract/rest';
import { badField } from '../../../dispatch/rest-dispatch.ts';
import type { E2bCall } from '../wire/e2b-call.ts';
import type { E2bParts } from '../wire/e2b-parts.ts';
import { notOffered } from '../wire/e2b-failure.ts';
import { policyOf } from './network-words.ts';
import { sourceOf } from './template.ts';
import { LABEL } from './own-labels.ts';

export const DEFAULT_TIMEOUT_SECS = 300;
const NAME_BYTES = 8;

type Fields = Readonly<Record<string, unknown>>;

/** Fields that are said for a template which is built with them; a sandbox cannot have them here. */
const NOT_HERE: Readonly<Record<string, string>> = {
  iam: 'iam (tokens of the workload) is not offered',
  mcp: 'mcp is not offered: this server has no MCP gateway',
};
const KNOWN = new Set([
  'templateID',
  'timeout',
  'metadata',
  'envVars',
  'allow_internet_access',
  'network',
  'autoPause',
  'autoPauseMemory',
  'autoResume',
  'secure',
  'volumeMounts',
  ...Object.keys(NOT_HERE),
]);

/** The create of ours that a create of E2B's stands for. It is removed at its timeout, and has no other end. */
export async function readNewSandbox(
  fields: Fields,
  call: E2bCall,
  { arePortsPublic }: Pick<E2bParts, 'arePortsPublic'>,
): Promise<CreateSandboxRequest> {
  requireOffered(fields);
  const template = textOf(fields['templateID'], 'templateID');
  const network = recordOf(fields['network'], 'network');
  const policy = policyOf({ allowInternetAccess: booleanOf(fields, 'allow_internet_access'), network });
  const { resources = {}, ...source } = await sourceOf(template, call);
  const isOpen = booleanOf(network, 'allowPublicTraffic') ?? arePortsPublic;
  return {
    name: `e2b-${randomBytes(NAME_BYTES).toString('hex')}`,
    ...source,
    resources,
    env: Object.entries(textsOf(fields['envVars'], 'envVars')).map(([key, value]) => ({ key, value })),
    labels: {
      ...labelsOf(fields['metadata']),
      [LABEL.template]: template,
      [LABEL.traffic]: isOpen ? 'public' : 'token',
    },
    mounts: mountsOf(fields['volumeMounts']),
    network: { ...(policy === null ? {} : { policy }), ...dnsOf(network['dnsServers']) },
    lifecycle: { ephemeral: true, max_duration_secs: secondsOf(fields['timeout'], 'timeout') },
  };
}

function requireOffered(fields: Fields): void {
  for (const [field, value] of Object.entries(fields)) {
    if (!KNOWN.has(field)) throw badField(field, 'is not known here');
    const sentence = NOT_HERE[field];
    if (sentence !== undefined && value !== null && value !== undefined) throw notOffered(sentence);
  }
  const { enabled } = recordOf(fields['autoResume'], 'autoResume');
  if (booleanOf(fields, 'autoPause') === true || enabled === true)
    throw notOffered(
      'autoPause and autoResume are not offered yet: a sandbox is removed at its timeout; make the timeout longer with setTimeout',
    );
}

/** Seconds that a sandbox lives; E2B's default when they are not given. */
export function secondsOf(value: unknown, field: string): number {
  if (value === undefined || value === null) return DEFAULT_TIMEOUT_SECS;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0)
    throw badField(field, 'must be a whole number of seconds');
  return Math.max(1, value);
}

export function textOf(value: unknown, field: string): string {
  if (typeof value !== 'string' || value === '') throw badField(field, 'must be a text');
  return value;
}

export function recordOf(value: unknown, field: string): Fields {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw badField(field, 'must be an object');
  return value as Fields;
}

export function booleanOf(fields: Fields, field: string): boolean | null {
  const value = fields[field] ?? null;
  if (value !== null && typeof value !== 'boolean') throw badField(field, 'must be true or false');
  return value;
}

function textsOf(value: unknown, field: string): Readonly<Record<string, string>> {
  const texts = recordOf(value, field);
  const wrong = Object.entries(texts).find(([, text]) => typeof text !== 'string');
  if (wrong !== undefined) throw badField(`${field}.${wrong[0]}`, 'must be a text');
  return texts as Readonly<Record<string, string>>;
}

function labelsOf(value: unknown): Readonly<Record<string, string>> {
  const metadata = textsOf(value, 'metadata');
  const taken = Object.keys(metadata).find((key) => key.startsWith(LABEL.prefix));
  if (taken !== undefined)
    throw badField(`metadata.${taken}`, `must not begin with ${LABEL.prefix}, which the server uses`);
  return metadata;
}

function mountsOf(value: unknown): NonNullable<CreateSandboxRequest['mounts']> {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw badField('volumeMounts', 'must be a list');
  return value.map((each: unknown, index) => {
    const field = `volumeMounts[${index}]`;
    const { name, path } = recordOf(each, field);
    return { type: 'named', name: textOf(name, `${field}.name`), guest: textOf(path, `${field}.path`) };
  });
}

function dnsOf(value: unknown): { dns?: { nameservers: string[] } } {
  if (value === undefined || value === null) return {};
  if (!Array.isArray(value) || !value.every((each) => typeof each === 'string'))
    throw badField('network.dnsServers', 'must be a list of addresses');
  return { dns: { nameservers: value } };
}
