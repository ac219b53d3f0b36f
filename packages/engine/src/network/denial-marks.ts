import type { Decider } from '../policy/network-decision.ts';

/** Why the packet filter drops something. The place in this list is what a packet carries. */
const REASONS = [
  'rule',
  'default',
  'closed_port',
  'out_of_reach',
  'quic',
  'too_many_connections',
  'too_many_questions',
  'no_proxy',
  'ceiling',
] as const satisfies readonly Decider[];

type DenialReason = (typeof REASONS)[number];

/** Above the index of a rule. */
const REASON_BITS = 16;

/**
 * In place of `drop`, where it is to be known that and why something was dropped. What is marked so goes no further, so the mark meets
 * no other use of marks.
 */
export function denyBecause(reason: DenialReason, rule = 0): string {
  return `meta mark set ${denialMark(reason, rule)} goto denied`;
}

export function denialMark(reason: DenialReason, rule = 0): number {
  return (REASONS.indexOf(reason) + 1) * 2 ** REASON_BITS + rule;
}

/** Null for a mark that is none of ours. */
export function readDenialMark(
  mark: number,
): { readonly decidedBy: DenialReason; readonly rule: number | null } | null {
  const decidedBy = REASONS[Math.floor(mark / 2 ** REASON_BITS) - 1];
  if (decidedBy === undefined) return null;
  return { decidedBy, rule: decidedBy === 'rule' ? mark % 2 ** REASON_BITS : null };
}

/** What the static rules call them. */
export const DENIAL_DEFINITIONS: readonly string[] = REASONS.filter((reason) => reason !== 'rule').map(
  (reason) => `define by_${reason} = ${denialMark(reason)}`,
);
