import type { Claim } from '../claim.ts';
import { bodyClaims, endpointClaims } from './answers.ts';
import { choiceClaims, sourceClaims } from './create-fields.ts';
import { credentialClaims } from './credentials.ts';
import { requestErrorClaims, stateErrorClaims } from './errors.ts';
import { diskImageClaims, statClaims } from './host-mounts.ts';
import { mcpClaims } from './mcp.ts';
import { measuringClaims } from './measuring.ts';
import { flagClaims, mountClaims } from './mounts.ts';
import { dnsClaims, networkClaims } from './network.ts';
import { policyClaims } from './network-policy.ts';
import { outageClaims } from './outage.ts';
import { pageClaims } from './pages.ts';
import { patchClaims } from './patches.ts';
import { recordClaims, statusClaims, transitionClaims } from './record.ts';
import { interceptionClaims, refusedPolicyClaims } from './refused-network.ts';
import { registryClaims } from './registry.ts';
import { grantedLimitClaims, placeClaims, resolvedClaims } from './resolved.ts';
import { envelopeClaims } from './rpc-envelope.ts';
import { metricsClaims } from './rpc-metrics.ts';
import { codeClaims, commandClaims } from './rpc-run.ts';
import { startClaims } from './rpc-start.ts';
import { runtimeClaims } from './runtime-fields.ts';
import { serverCommandClaims } from './server-command.ts';
import { startFlagClaims } from './server-start.ts';
import { environmentClaims, lifecycleClaims, resourceClaims, rlimitClaims } from './spec-fields.ts';
import { usageClaims } from './usage.ts';

/** A part of the table, as the page for people is divided. */
interface Section {
  readonly title: string;
  /** A sentence before the table, if there is one to say. */
  readonly about: string;
  readonly claims: readonly Claim[];
}

export const SECTIONS: readonly Section[] = [
  { title: 'Sandbox', about: 'The record that the control plane shows.', claims: recordClaims },
  { title: 'Status', about: '', claims: [...statusClaims, ...transitionClaims] },
  {
    title: 'Outages',
    about: 'What happens while the engine of a host is away, and when it is back.',
    claims: outageClaims,
  },
  {
    title: 'Image and source',
    about: 'Fields of a create request alone.',
    claims: [...sourceClaims, ...choiceClaims, ...registryClaims],
  },
  { title: 'Patches', about: '', claims: patchClaims },
  { title: 'Resources and what is in force', about: '', claims: [...resourceClaims, ...resolvedClaims] },
  { title: 'Environment and labels', about: '', claims: environmentClaims },
  { title: 'Lifecycle', about: '', claims: lifecycleClaims },
  { title: 'Limits of processes', about: '', claims: [...rlimitClaims, ...grantedLimitClaims] },
  { title: 'Runtime', about: '', claims: [...runtimeClaims, ...placeClaims, ...measuringClaims] },
  {
    title: 'Mounts',
    about: 'More in [mounts](../guides/mounts.md).',
    claims: [...mountClaims, ...flagClaims, ...statClaims, ...diskImageClaims],
  },
  {
    title: 'Network',
    about: '',
    claims: [...networkClaims, ...policyClaims, ...dnsClaims, ...refusedPolicyClaims, ...interceptionClaims],
  },
  { title: 'Lists and queries', about: '', claims: pageClaims },
  { title: 'Bodies and headers', about: '', claims: bodyClaims },
  { title: 'Endpoints', about: '', claims: endpointClaims },
  { title: 'Usage', about: '', claims: usageClaims },
  { title: 'Credentials and messages', about: '', claims: credentialClaims },
  { title: 'Errors', about: '', claims: [...requestErrorClaims, ...stateErrorClaims] },
  { title: 'JSON-RPC: start and stop', about: '', claims: startClaims },
  { title: 'JSON-RPC: commands', about: '', claims: commandClaims },
  { title: 'JSON-RPC: code', about: '', claims: codeClaims },
  { title: 'JSON-RPC: metrics', about: '', claims: metricsClaims },
  { title: 'JSON-RPC: envelopes and failures', about: '', claims: envelopeClaims },
  { title: 'Model Context Protocol', about: '', claims: mcpClaims },
  { title: 'svc server start', about: '', claims: startFlagClaims },
  { title: 'Other commands of svc server', about: '', claims: serverCommandClaims },
];

/** The whole table: what is specified, and what proves it. */
export const CLAIMS: readonly Claim[] = SECTIONS.flatMap(({ claims }) => claims);
