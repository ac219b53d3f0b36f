import type { CreateSandboxRequest } from '@svc/contract/rest';
import { checkSandbox } from '../../sandboxes/check-sandbox.ts';
import { makeSandbox } from '../../sandboxes/make-sandbox.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import { askerOf } from '../../dispatch/asker-of.ts';
import { readCreateSandbox } from './read-create-sandbox.ts';
import { requireEngine } from '../../orchestrator/require-engine.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { HostStorage } from '../../accounting/host-storage.ts';
import type { EngineHealth } from '../../orchestrator/engine-health.ts';
import type { Orchestrator } from '../../orchestrator/orchestrator.ts';
import type { Lifecycle } from '../../sandboxes/lifecycle.ts';
import type { Sealer } from '../../secrets/sealer.ts';
import { viewFor } from './sandbox-view.ts';

export interface CreateParts {
  readonly orchestrator: Orchestrator;
  readonly health: EngineHealth;
  readonly storage: HostStorage;
  readonly sealer: Sealer;
  readonly lifecycle: Lifecycle;
  /** Addresses of this host that callers may publish ports on, beside loopback. */
  readonly publishAddresses: readonly string[];
}

/** Writes down a sandbox and, with `isStarted`, that it should run; the rest happens in the background. */
export async function createSandbox(
  parts: CreateParts,
  call: RestCall,
  request: { readonly id: string; readonly body: CreateSandboxRequest; readonly isStarted: boolean },
): Promise<SandboxRecord> {
  const { orchestrator, sealer, publishAddresses } = parts;
  const { id, body, isStarted } = request;
  const sandbox = checkSandbox(readCreateSandbox(body, call), publishAddresses);
  if (isStarted) requireEngine(parts.health);
  await parts.storage.require();
  const record = await makeSandbox(
    { orchestrator, sealer },
    { id, organization: call.organization, sandbox, isStarted, asker: askerOf(call) },
    (work) => call.commit(({ db }) => work(db), viewFor(call)),
  );
  if (isStarted) parts.lifecycle.converge(id);
  return record;
}
