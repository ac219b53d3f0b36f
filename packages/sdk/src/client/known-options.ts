import { SvcError } from '../svc-error.ts';

/** All option names of a type; a missing name does not compile. */
export type OptionNames<Options> = { readonly [Name in keyof Required<Options>]: true };

/**
 * Refuses unknown options. A misspelt option would be ignored: a client would use another server, a sandbox would have other limits.
 * @throws SvcError `invalid_request` that names it, and the option that was probably meant
 */
export function requireKnownOptions(options: object, names: Readonly<Record<string, true>>): void {
  if (typeof options !== 'object')
    throw new SvcError('invalid_request', `Options are an object, not a ${typeof options}`);
  // One that is undefined changes nothing, as one that is absent.
  const unknown = Object.entries(options).find(
    ([name, value]) => value !== undefined && !Object.hasOwn(names, name),
  );
  if (unknown === undefined) return;
  const [field] = unknown;
  const known = Object.keys(names);
  const nearest = findNearest(field, known);
  const hint = nearest === undefined ? `known are ${known.join(', ')}` : `did you mean '${nearest}'?`;
  throw new SvcError('invalid_request', `There is no option '${field}' here; ${hint}`, {
    details: { field },
  });
}

/** A name that has the other one in it (`url`, `apiUrl`), or else differs in few letters. */
function findNearest(name: string, known: readonly string[]): string | undefined {
  const wanted = name.toLowerCase();
  const within = known.find((each) => isPart(each.toLowerCase(), wanted));
  if (within !== undefined) return within;
  const [nearest] = known
    .map((each) => ({ each, distance: distanceOf(wanted, each.toLowerCase()) }))
    .filter(({ distance }) => distance <= Math.max(2, wanted.length / 3))
    .toSorted((a, b) => a.distance - b.distance);
  return nearest?.each;
}

function isPart(one: string, other: string): boolean {
  const shorter = Math.min(one.length, other.length);
  return shorter > 2 && (one.includes(other) || other.includes(one));
}

/** Letters to insert, remove or replace (Levenshtein). */
function distanceOf(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_none, index) => index);
  for (let index = 0; index < from.length; index++) {
    const next = [index + 1];
    for (let column = 0; column < to.length; column++) {
      const replaced = (row[column] ?? 0) + (from[index] === to[column] ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
