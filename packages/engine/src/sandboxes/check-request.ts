import type { SandboxSpec } from '@svc/contract';
import type { CheckSandbox } from '@svc/contract/orchestrator';
import { PlatformError } from '@svc/contract/errors';
import { readRequestedInterface } from '../network/requested-interface.ts';
import { ceilingsOf } from '../policy/ceiling.ts';
import { checkCeiling } from '../policy/check-ceiling.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { checkNameservers } from './check-nameservers.ts';
import { checkMounts } from './check-mounts.ts';
import { checkSize } from './check-size.ts';
import { checkLimitsKept, checkSupported } from './check-supported.ts';
import { chooseRuntime } from './choose-runtime.ts';
import type { Kit } from './kit.ts';

/** Schemas take a while to load, which the start of an engine need not wait for. */
const loadCheck = () => import('@svc/contract/check-spec');
let check: ReturnType<typeof loadCheck> | undefined;

type CheckKit = Pick<Kit, 'runtimes' | 'defaultIsolation' | 'missing' | 'readHostSize'> & {
  readonly cgroups: Pick<Kit['cgroups'], 'parentProblem'>;
  readonly network: Pick<Kit['network'], 'ceilings' | 'checkInterface' | 'hasIpv6' | 'decisionContext'>;
  readonly mounts: Pick<Kit['mounts'], 'bindRoots' | 'diskImageRoots'>;
};

/**
 * Checks a create before anything is made: whether the spec is legal, and whether this host can do what it
 * asks for. @throws PlatformError `invalid_sandbox_config` naming the field, `isolation_unavailable`
 */
export async function checkRequest(
  kit: CheckKit,
  request: CheckSandbox,
  { mayExceedCeiling = false }: { readonly mayExceedCeiling?: boolean } = {},
): Promise<{ readonly spec: SandboxSpec; readonly runtime: Runtime }> {
  const { checkSpec } = await (check ??= loadCheck());
  const spec = checkSpec(request.spec);
  checkSupported(spec, kit.network);
  const ceilings = [...kit.network.ceilings, ...ceilingsOf(request.networkCeiling)];
  if (!mayExceedCeiling) checkCeiling(spec.network, ceilings);
  await checkNameservers(spec.network, async () => (await kit.network.decisionContext(null)).hostNetworks);
  const requested = readRequestedInterface(spec.network);
  if (requested !== null) kit.network.checkInterface(requested);
  checkParent(kit, request.cgroupParent ?? null);
  const runtime = chooseRuntime(kit, request.isolation);
  checkLimitsKept(spec, runtime.isolation);
  checkSize(spec, kit.readHostSize());
  await checkMounts(kit.mounts, { ...request, spec });
  return { spec, runtime };
}

function checkParent({ cgroups }: CheckKit, parent: string | null): void {
  const problem = parent === null ? undefined : cgroups.parentProblem(parent);
  if (problem !== undefined)
    throw new PlatformError('invalid_sandbox_config', `cgroupParent: ${problem}`, {
      details: { field: 'cgroupParent', reason: problem },
    });
}
