import type { Finding } from './finding.ts';
import { findingsOf } from './finding.ts';
import type { RuntimeFact } from './host-facts.ts';
import { missingAdvisories, type Advisory } from '../runtime/advisories.ts';
import { runtimeNamed } from '../runtime/runtimes.ts';

const YEAR_MS = 365 * 24 * 3600 * 1000;

/** Runtimes isolate hostile code: a missing known fix is a warning. Age is only reported: a Debian release keeps its builds. */
export function judgeRuntimes(runtimes: readonly RuntimeFact[], now: Date): readonly Finding[] {
  const finding = findingsOf('runtimes');
  return runtimes.map((runtime) => {
    const name = `${runtime.name} (${runtime.isolation})`;
    const { isOptional, install, upgrade, variable } = runtimeNamed(runtime.name);
    if (!runtime.usable && runtime.version === null && isOptional)
      return finding(name, 'absent', 'not installed; another runtime starts this class, and takes longer');
    if (!runtime.usable) {
      const remedy = `see the reason; the engine leaves ${runtime.name} aside until it works`;
      return finding(name, 'missing', runtime.reason, runtime.version === null ? install : remedy);
    }
    const built = runtime.released === null ? '' : `, built ${runtime.released.toISOString().slice(0, 10)}`;
    const isOld = runtime.released !== null && now.getTime() - runtime.released.getTime() > YEAR_MS;
    const says = `starts sandboxes; ${runtime.reason}${built}${isOld ? ', more than a year ago' : ''}`;
    const lacking = missingAdvisories(runtime.name, runtime.version);
    if (lacking.length === 0) return finding(name, 'ok', says);
    return finding(
      name,
      'warn',
      `${says}${lackingWords(lacking)}`,
      `${upgrade}, or a newer build named by ${variable}`,
    );
  });
}

function lackingWords(advisories: readonly Advisory[]): string {
  if (advisories.length === 0) return '';
  const ways = [...new Set(advisories.map(({ heldBy }) => heldBy))];
  return `; lacks the fixes of ${advisories.map(({ id }) => id).join(', ')}, which svc holds off itself: ${ways.join('; ')}`;
}
