import type { Finding } from './finding.ts';
import { findingsOf } from './finding.ts';
import type { RuntimeFact } from './host-facts.ts';
import { missingAdvisories, type Advisory } from '../runtime/advisories.ts';

const YEAR_MS = 365 * 24 * 3600 * 1000;
/** Optional: other runtimes cover the same class. */
const OPTIONAL: ReadonlySet<string> = new Set(['crun']);

/** Runtimes isolate hostile code: a missing known fix is a warning. Age is only reported: a Debian release keeps its builds. */
export function judgeRuntimes(runtimes: readonly RuntimeFact[], now: Date): readonly Finding[] {
  const finding = findingsOf('runtimes');
  return runtimes.map((runtime) => {
    const name = `${runtime.name} (${runtime.isolation})`;
    if (!runtime.usable && runtime.version === null && OPTIONAL.has(runtime.name))
      return finding(name, 'absent', 'not installed; runc does the same, and takes longer');
    if (!runtime.usable) return finding(name, 'missing', runtime.reason, remedyOf(runtime));
    const built = runtime.released === null ? '' : `, built ${runtime.released.toISOString().slice(0, 10)}`;
    const isOld = runtime.released !== null && now.getTime() - runtime.released.getTime() > YEAR_MS;
    const says = `starts sandboxes; ${runtime.reason}${built}${isOld ? ', more than a year ago' : ''}`;
    const lacking = missingAdvisories(runtime.name, runtime.version);
    if (lacking.length === 0) return finding(name, 'ok', says);
    return finding(name, 'warn', `${says}${lackingWords(lacking)}`, newerBuild(runtime));
  });
}

function lackingWords(advisories: readonly Advisory[]): string {
  if (advisories.length === 0) return '';
  const ways = [...new Set(advisories.map(({ heldBy }) => heldBy))];
  return `; lacks the fixes of ${advisories.map(({ id }) => id).join(', ')}, which svc holds off itself: ${ways.join('; ')}`;
}

function remedyOf({ name, version }: RuntimeFact): string {
  if (version !== null) return `see the reason; the engine leaves ${name} aside until it works`;
  return name === 'runsc' ? 'make runsc' : `apt-get install ${name}`;
}

function newerBuild({ name }: RuntimeFact): string {
  return name === 'runc'
    ? 'make runc, or a newer build named by SVC_RUNC'
    : `apt-get install --only-upgrade ${name}, or a newer build named by SVC_${name.toUpperCase()}`;
}
