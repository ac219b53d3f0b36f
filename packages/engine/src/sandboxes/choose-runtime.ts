import { PlatformError } from '@svc/contract/errors';
import type { Isolation } from '@svc/contract/orchestrator';
import type { Runtime } from '../runtime/runtime.ts';
import type { Kit } from './kit.ts';

/** The runtime for a class of isolation. A class that this host lacks is refused with the reason; it is never replaced by a weaker one. */
export function chooseRuntime(
  kit: Pick<Kit, 'runtimes' | 'defaultIsolation' | 'missing'>,
  wanted: Isolation | undefined,
): Runtime {
  const isolation = wanted ?? kit.defaultIsolation;
  const runtime = kit.runtimes.find((candidate) => candidate.isolation === isolation);
  if (runtime !== undefined) return runtime;
  const reason =
    isolation === null
      ? [...kit.missing].map(([name, why]) => `${name}: ${why}`).join('; ')
      : (kit.missing.get(isolation) ?? 'no runtime offers it');
  const message = `isolation ${isolation ?? 'of any class'} is not available on this host (${reason}); see \`svc doctor\``;
  throw new PlatformError('isolation_unavailable', message, { details: { isolation, reason } });
}
