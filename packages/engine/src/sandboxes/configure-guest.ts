import { isDeepStrictEqual } from 'node:util';
import type { Rlimit } from '@svc/contract';
import { PlatformError } from '@svc/contract/errors';
import type { Payload } from '@svc/contract/frames';
import { isUnlimited } from '@svc/contract/spec';
import { guestConfig } from '../guest/guest-config.ts';
import { refusalReason } from '../guest/guest-messages.ts';
import { grantableRlimits } from '../runtime/rlimits.ts';
import { NOT_KEPT } from './check-supported.ts';
import type { Kit } from './kit.ts';
import type { EngineRecord } from './record.ts';
import type { Run } from './run.ts';

/** Sends svc-init the configuration of new processes: environment, user, folder and limits. */
export async function configure(
  kit: Pick<Kit, 'rlimitCeilings'>,
  run: Run,
  record: EngineRecord,
  signal: AbortSignal,
): Promise<void> {
  await sendConfig(run, configOf(kit, run, record), signal);
}

/**
 * As `configure`, for a sandbox that was configured for `before` and not used since: sends the difference, if there is one. With
 * `endsSpares` it sends in any case, which ends the processes started ahead.
 */
export async function configureAgain(
  kit: Pick<Kit, 'rlimitCeilings'>,
  run: Run,
  change: { readonly before: EngineRecord; readonly record: EngineRecord; readonly endsSpares: boolean },
  signal: AbortSignal,
): Promise<void> {
  const { before, record, endsSpares } = change;
  const { files: known, ...old } = configOf(kit, run, before);
  const { files: wanted, ...config } = configOf(kit, run, record);
  const files = isDeepStrictEqual(known, wanted) ? [] : wanted;
  if (endsSpares || files.length > 0 || !isDeepStrictEqual(old, config))
    await sendConfig(run, { ...config, files }, signal);
}

async function sendConfig(run: Run, config: Payload, signal: AbortSignal): Promise<void> {
  const answer = await run.link.request('svc.configure', config, signal);
  if (answer.type === 'svc.configured') return;
  throw new PlatformError('start_failed', `the sandbox refused its configuration: ${refusalReason(answer)}`);
}

function configOf(kit: Pick<Kit, 'rlimitCeilings'>, run: Run, record: EngineRecord) {
  const host = { hostname: hostnameOf(record), link: run.slot.link };
  const config = guestConfig(record.spec, record.image.config, host);
  // As the runtime lowers them: svc-init could not raise them again.
  const rlimits = grantableRlimits(record.spec.rlimits ?? [], kit.rlimitCeilings);
  return { ...config, rlimits: rlimits.map(toGuestLimit), unkept_limits: NOT_KEPT[record.isolation] };
}

/** The kernel's value for "no limit", which a JavaScript number cannot hold. */
const RLIM_INFINITY = 2n ** 64n - 1n;

function toGuestLimit({ resource, soft, hard }: Rlimit): Payload {
  const toLimit = (value: number) => (isUnlimited(value) ? RLIM_INFINITY : value);
  return { resource, soft: toLimit(soft), hard: toLimit(hard) };
}

export function hostnameOf(record: EngineRecord): string {
  return record.spec.runtime?.hostname ?? record.handle.slice(0, 12);
}
