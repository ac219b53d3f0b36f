import type { Claim } from './claim.ts';
import { bodyClaims, endpointClaims } from './claims/answers.ts';
import { choiceClaims, sourceClaims } from './claims/create-fields.ts';
import { credentialClaims } from './claims/credentials.ts';
import { requestErrorClaims, stateErrorClaims } from './claims/errors.ts';
import { diskImageClaims, statClaims } from './claims/host-mounts.ts';
import { mcpClaims } from './claims/mcp.ts';
import { measuringClaims } from './claims/measuring.ts';
import { flagClaims, mountClaims } from './claims/mounts.ts';
import { dnsClaims, networkClaims } from './claims/network.ts';
import { policyClaims } from './claims/network-policy.ts';
import { outageClaims } from './claims/outage.ts';
import { pageClaims } from './claims/pages.ts';
import { patchClaims } from './claims/patches.ts';
import { recordClaims, statusClaims, transitionClaims } from './claims/record.ts';
import { interceptionClaims, refusedPolicyClaims } from './claims/refused-network.ts';
import { registryClaims } from './claims/registry.ts';
import { grantedLimitClaims, placeClaims, resolvedClaims } from './claims/resolved.ts';
import { envelopeClaims } from './claims/rpc-envelope.ts';
import { metricsClaims } from './claims/rpc-metrics.ts';
import { codeClaims, commandClaims } from './claims/rpc-run.ts';
import { startClaims } from './claims/rpc-start.ts';
import { runtimeClaims } from './claims/runtime-fields.ts';
import { serverCommandClaims } from './claims/server-command.ts';
import { startFlagClaims } from './claims/server-start.ts';
import { environmentClaims, lifecycleClaims, resourceClaims, rlimitClaims } from './claims/spec-fields.ts';
import { usageClaims } from './claims/usage.ts';

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
    about: 'More in [mounts](../mounts.md).',
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
