import type { CreateSandboxRequest } from '@svc/contract/rest';
import { checkSandbox } from '../../sandboxes/check-sandbox.ts';
import { makeSandbox } from '../../sandboxes/make-sandbox.ts';
import type { SandboxRecord } from '../../store/sandboxes.ts';
import { askerOf } from '../../dispatch/asker-of.ts';
import { readCreateSandbox } from './read-create-sandbox.ts';
import { requireEngine } from '../../orchestrator/require-engine.ts';
import type { RestCall } from '../../dispatch/rest-call.ts';
import type { RestParts } from '../rest-parts.ts';
import { toSandboxView } from './sandbox-view.ts';

/** Writes down a sandbox and, with `isStarted`, that it should run; the rest happens in the background. */
export async function createSandbox(
  parts: RestParts,
  call: RestCall,
  request: { readonly id: string; readonly body: CreateSandboxRequest; readonly isStarted: boolean },
): Promise<SandboxRecord> {
  const { orchestrator, sealer, settings } = parts;
  const { id, body, isStarted } = request;
  const sandbox = checkSandbox(readCreateSandbox(body, call), settings.publishAddresses);
  if (isStarted) requireEngine(parts.health);
  await parts.storage.require();
  const record = await makeSandbox(
    { orchestrator, sealer },
    { id, organization: call.organization, sandbox, isStarted, asker: askerOf(call) },
    (work) => call.commit(({ db }) => work(db), toSandboxView),
  );
  if (isStarted) parts.lifecycle.converge(id);
  return record;
}
