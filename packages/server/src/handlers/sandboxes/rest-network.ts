import { isDeepStrictEqual } from 'node:util';
import { checkSpec, PlatformError, type NetworkChange } from '@svc/contract';
import { readSecrets } from '@svc/contract/spec';
import { eventCaller } from '../../dispatch/event-caller.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { EngineHealth } from '../../orchestrator/engine-health.ts';
import { requireEngine } from '../../orchestrator/require-engine.ts';
import { sealableOf, withKnownValues } from '../../sandboxes/change-secrets.ts';
import { invalidConfig, requireValues } from '../../sandboxes/check-sandbox.ts';
import type { Convergence } from '../../sandboxes/convergence.ts';
import { ceilingOf, toEngineCeiling, type NetworkCeilings } from '../../sandboxes/network-ceilings.ts';
import { recordSandboxEvent } from '../../sandboxes/sandbox-events.ts';
import { openSecrets, sealSecrets, withoutSources } from '../../sandboxes/sandbox-secrets.ts';
import { requireStored } from '../../sandboxes/secret-values.ts';
import type { Sealer } from '../../secrets/sealer.ts';
import { updateSandbox, type SandboxRecord } from '../../store/sandboxes.ts';
import { markValuesPending } from '../../store/secrets.ts';
import { viewFor } from './sandbox-view.ts';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import type { RestHandlers } from '../../dispatch/rest-handlers.ts';
import type { Database } from '../../store/database.ts';
import { answer, requireSandbox, requireVersion } from './rest-sandboxes.ts';

const CHECK_TIMEOUT_MS = 30_000;

type NetworkHandlers = Pick<RestHandlers, 'network.update' | 'network.explain'>;

export interface NetworkParts {
  readonly database: Database;
  readonly orchestrator: Orchestrator;
  readonly health: EngineHealth;
  readonly convergence: Convergence;
  readonly sealer: Sealer;
  readonly networkCeilings: NetworkCeilings;
}

export function networkHandlers(parts: NetworkParts): NetworkHandlers {
  const { database, orchestrator, networkCeilings } = parts;
  return {
    'network.update': async ({ params, body }, call) => {
      const record = await update(parts, call, params.sandbox_id, readSecrets(body));
      return await answer(call, record);
    },
    'network.explain': async ({ params, body }, call) => {
      const { id, spec } = await requireSandbox(database, call, { id: params.sandbox_id });
      const { host, port = 0, protocol = 'tcp', direction = 'egress' } = body;
      const planned = spec.network === undefined ? {} : { network: spec.network };
      const question = { direction, host, port, protocol };
      const networkCeiling = toEngineCeiling(ceilingOf(networkCeilings, call.organization.slug));
      const verdict = await orchestrator.explainNetwork(
        { id, ...planned, ...question, networkCeiling },
        call.signal,
      );
      const { action, decidedBy, rule, isByName, reason, addresses, isAssumed, secrets } = verdict;
      return {
        action,
        decided_by: decidedBy,
        rule,
        by_name: isByName,
        reason,
        addresses: addresses.map(({ decidedBy: by, ...address }) => ({ ...address, decided_by: by })),
        assumed: isAssumed,
        secrets: secrets.map(({ envVar, action: treatment }) => ({ env_var: envVar, action: treatment })),
      };
    },
  };
}

/**
 * Stores the network policy of a sandbox and applies it. When applying fails, the caller gets the error, and the convergence
 * applies the policy as soon as the engine can.
 */
async function update(
  { database, orchestrator, health, convergence, sealer, networkCeilings }: NetworkParts,
  call: RestCall,
  id: string,
  change: NetworkChange,
): Promise<SandboxRecord> {
  requireEngine(health);
  const found = await requireSandbox(database, call, { id });
  requireEngine(health, undefined, found.node);
  const { spec } = withChange(sealer, found, change);
  const { image, network } = withoutSources(spec);
  await orchestrator.check(
    {
      spec: { image, ...(network === undefined ? {} : { network }) },
      networkCeiling: toEngineCeiling(ceilingOf(networkCeilings, call.organization.slug)),
    },
    AbortSignal.timeout(CHECK_TIMEOUT_MS),
  );
  const record = await call.commit(async ({ db }) => {
    const now = await requireSandbox(db, call, { id });
    requireVersion(call, now);
    if (!isDeepStrictEqual(now.spec.network, found.spec.network))
      throw new PlatformError(
        'precondition_failed',
        'The network was changed by another call meanwhile; try again',
      );
    const wanted = withChange(sealer, now, change);
    const hasSecrets = change.secrets !== undefined;
    // What a secret's terms say no longer is not in the way of changes that are about something else.
    const isAboutSecrets = hasSecrets || change.tls !== undefined;
    if (isAboutSecrets) await requireStored(db, call.organization.id, wanted.spec);
    const changed = await updateSandbox(db, now, {
      spec: wanted.spec,
      ...(hasSecrets ? { secrets: sealSecrets(sealer, id, wanted.secrets) } : {}),
    });
    if (isAboutSecrets) await markValuesPending(db, [now.id]);
    if (changed.version !== now.version)
      await recordSandboxEvent(db, 'sandbox_network_changed', changed, eventCaller(call), {
        changed: Object.keys(change),
        rules: changed.spec.network?.policy?.rules?.length ?? 0,
      });
    return changed;
  }, viewFor(call));
  await convergence.converge(id);
  return record;
}

/** @throws PlatformError `invalid_sandbox_config` naming the field */
function withChange(sealer: Sealer, record: SandboxRecord, change: NetworkChange) {
  const { spec } = record;
  if (spec.network?.enabled === false)
    throw invalidConfig('network.enabled', 'the sandbox was made without a network; make another one');
  const known = withKnownValues(sealer, record, change);
  const changed = checkSpec({ ...spec, network: { ...spec.network, ...known } });
  if (change.secrets === undefined) return { spec: changed, secrets: openSecrets(sealer, record) };
  requireValues(changed);
  return sealableOf(sealer, record, changed);
}
