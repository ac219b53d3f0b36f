import { PlatformError } from '@svc/contract/errors';
import type { Group } from '@svc/contract/orchestrator';
import { contains, formatCidr, parseCidr, type Address, type Cidr } from './address.ts';
import { classify, GROUP_RANGES, RESERVED_RANGES, type HostNetworks } from './groups.ts';

/** An operator's upper bound for network policies. */
export interface Ceiling {
  readonly groups: readonly Group[];
  readonly ranges: readonly Cidr[];
}

const ALL = 'all';
const NONE = 'none';
const GROUPS = ['public', 'private', 'host', 'metadata', 'link_local'] as const satisfies readonly Group[];

/**
 * Parses the option: groups and ranges of addresses, separated by commas, in addition to public addresses; `none` excludes those, `all` is
 * everything. Returns the whole list, without `none`. @throws PlatformError `invalid_request`
 */
export function readCeiling(text: string): readonly string[] {
  const words = text.split(',').map((word) => word.trim());
  if (words.length === 1 && words[0] === ALL) return words;
  const named = words.filter((word) => word !== NONE).map(canonicalWord);
  return [...new Set([...(words.includes(NONE) ? [] : ['public']), ...named])];
}

/** Formats a ceiling for `readCeiling`. */
export function writeCeiling(words: readonly string[]): string {
  return words.includes(ALL) || words.includes('public') ? words.join(',') : [NONE, ...words].join(',');
}

/** Null for no bound. */
export function parseCeiling(words: readonly string[]): Ceiling | null {
  if (words.includes(ALL)) return null;
  const groups = GROUPS.filter((group) => words.includes(group));
  const ranges = words.filter((word) => !groups.some((group) => group === word)).map(rangeOf);
  return { groups, ranges };
}

/** The ceilings of a record or a request; empty for no bound. */
export function ceilingsOf(words: readonly string[] | null | undefined): readonly Ceiling[] {
  const ceiling = words === null || words === undefined ? null : parseCeiling(words);
  return ceiling === null ? [] : [ceiling];
}

/** The inverse of `parseCeiling`. */
export function wordsOf({ groups, ranges }: Ceiling): readonly string[] {
  return [...groups, ...ranges.map(formatCidr)];
}

export function isWithin({ groups, ranges }: Ceiling, address: Address, hostNetworks: HostNetworks): boolean {
  if (ranges.some((range) => contains(range, address))) return true;
  const group = classify(address, hostNetworks);
  return group !== null && groups.includes(group);
}

/** Whether the ceiling allows a whole range, on any host. */
export function coversRange({ groups, ranges }: Ceiling, asked: Cidr): boolean {
  if (ranges.some((range) => isPartOf(asked, range))) return true;
  const met = SPECIAL_RANGES.filter(({ range }) => isPartOf(asked, range) || isPartOf(range, asked));
  const isSpecial = met.some(({ range }) => isPartOf(asked, range));
  const needed = [...met.map(({ group }) => group), ...(isSpecial ? [] : (['public'] as const))];
  return needed.every((group) => group !== null && groups.includes(group));
}

/** Ranges that are not public, with their group; null for ranges without one. */
const SPECIAL_RANGES: readonly { readonly group: Group | null; readonly range: Cidr }[] = [
  ...(['metadata', 'loopback', 'private', 'link_local', 'multicast'] as const).flatMap((group) =>
    GROUP_RANGES[group].map((range) => ({ group, range })),
  ),
  ...RESERVED_RANGES.map((range) => ({ group: null, range })),
];

function isPartOf(inner: Cidr, outer: Cidr): boolean {
  return inner.prefixLength >= outer.prefixLength && contains(outer, inner);
}

function canonicalWord(word: string): string {
  const name = word.replace('-', '_');
  return GROUPS.some((group) => group === name) ? name : formatCidr(rangeOf(word));
}

function rangeOf(word: string): Cidr {
  const range = parseCidr(word);
  if (range !== null) return range;
  const known = GROUPS.join(', ').replace('_', '-');
  throw new PlatformError(
    'invalid_request',
    `'${word}' is no part of a network ceiling; give ${known}, or ranges of addresses such as 10.8.0.0/16, with none in front to leave public addresses out; or all alone`,
  );
}
