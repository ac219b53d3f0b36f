import type { Network } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import type { SecretValues } from '@svc/contract/orchestrator';
import { DEFAULT_TLS, placesOf, violationRule, type ViolationRule } from '@svc/contract/spec';
import type { Interception } from '../egress/proxied-sandboxes.ts';
import type { Secret, SecretSettings, ViolationAction } from '../egress/secrets/secret-settings.ts';
import type { Network as NetworkPort, Slot } from '../network/network.ts';
import { ceilingsOf } from '../policy/ceiling.ts';
import { isIntercepted, readPorts } from '../policy/read-ports.ts';
import { resolvePolicy } from '../policy/resolve-policy.ts';
import type { EngineRecord } from './record.ts';

const PEM = /^\s*-----BEGIN CERTIFICATE-----/;

type Entry = NonNullable<Network['secrets']>['entries'][number];

/**
 * How the connections of a sandbox are intercepted; null when they are not. A secret without a value is allowed for no host, so requests
 * with its placeholder are blocked.
 */
export function interceptionOf(network: Network | undefined, values: SecretValues): Interception | null {
  if (network === undefined || !isIntercepted(network)) return null;
  const tls = network.tls ?? {};
  return {
    ...readPorts(network),
    bypass: tls.bypass ?? [],
    cache: {
      capacity: tls.cache?.capacity ?? DEFAULT_TLS.cache.capacity,
      validityHours: tls.cache?.validity_hours ?? DEFAULT_TLS.cache.validity_hours,
    },
    trust: {
      verifyUpstream: tls.verify_upstream ?? DEFAULT_TLS.verify_upstream,
      scopedVerifyUpstream: tls.scoped_verify_upstream ?? [],
      upstreamCas: tls.upstream_ca_cert ?? [],
      scopedUpstreamCas: (tls.scoped_upstream_ca_cert ?? []).map(({ pattern, path }) => ({
        pattern,
        certificate: path,
      })),
    },
    secrets: secretsOf(network, values),
  };
}

/** Applies the network part of a spec to the packet filter and the proxy. */
export async function applyNetwork(
  port: Pick<NetworkPort, 'setPolicy'>,
  slot: Slot,
  { spec: { network }, networkCeiling, imageScope = null }: NetworkRecord,
  values: SecretValues,
): Promise<void> {
  await port.setPolicy(
    slot,
    resolvePolicy(network, ceilingsOf(networkCeiling)),
    interceptionOf(network, values),
    imageScope,
  );
}

/** The fields of a record that define where a sandbox may connect to. */
export type NetworkRecord = Pick<EngineRecord, 'spec' | 'networkCeiling' | 'imageScope'>;

/** @throws PlatformError `invalid_sandbox_config` that names the entry without a value. */
export function requireValues(network: Network | undefined, values: SecretValues): void {
  for (const [index, { env_var: name }] of (network?.secrets?.entries ?? []).entries())
    if (values[name] === undefined)
      throw invalid(`network.secrets.entries[${index}].value`, `the value of ${name} is missing; send it`);
}

/** Refuses TLS and secret settings that cannot be enforced. */
export function checkInterception({ network }: { readonly network?: Network | undefined }): void {
  const { tls } = network ?? {};
  if ((tls?.intercept_ca?.cert_path ?? tls?.intercept_ca?.key_path ?? null) !== null)
    throw invalid('network.tls.intercept_ca', 'this host signs with an authority of its own; leave it out');
  const certificates = [
    ...(tls?.upstream_ca_cert ?? []).map((text, at) => [`upstream_ca_cert[${at}]`, text] as const),
    ...(tls?.scoped_upstream_ca_cert ?? []).map(
      ({ path }, at) => [`scoped_upstream_ca_cert[${at}].path`, path] as const,
    ),
  ];
  for (const [field, text] of certificates)
    if (!PEM.test(text))
      throw invalid(`network.tls.${field}`, 'must be the text of a certificate (PEM), not a path');
  for (const [index, { value = '' }] of (network?.secrets?.entries ?? []).entries())
    if (value !== '')
      throw invalid(
        `network.secrets.entries[${index}].value`,
        'is not part of a spec; send it beside the spec',
      );
}

function secretsOf({ secrets }: Network, values: SecretValues): SecretSettings {
  return {
    entries: (secrets?.entries ?? []).map((entry) => toSecret(entry, values[entry.env_var])),
    onViolation: toAction(violationRule(secrets ?? {})) ?? { type: 'block_and_log' },
  };
}

function toSecret(entry: Entry, value: string | undefined): Secret {
  const { headerFields, ...places } = placesOf(entry);
  return {
    envVar: entry.env_var,
    placeholder: entry.placeholder,
    value: value ?? '',
    allowedHosts: value === undefined ? [] : entry.allowed_hosts,
    injection: headerFields === null ? places : { ...places, headerFields },
    onViolation: toAction(violationRule(entry)),
    requireTlsIdentity: entry.require_tls_identity ?? true,
  };
}

function toAction({ passthroughHosts: hosts, action }: ViolationRule): ViolationAction | null {
  if (hosts.length === 0) return action;
  return { type: 'passthrough', hosts, ...(action === null ? {} : { otherwise: action.type }) };
}

function invalid(field: string, reason: string): PlatformError {
  return new PlatformError('invalid_sandbox_config', `${field}: ${reason}`, { details: { field, reason } });
}
