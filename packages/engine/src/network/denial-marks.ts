import type { Decider } from '@svc/contract/orchestrator';

/** The reasons for which the packet filter drops packets. A packet's mark holds the index in this list. */
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

/** The bit offset of the reason; the index of the rule is below. */
const REASON_BITS = 16;

/** Replaces `drop` where the denial is to be reported. Marked packets go no further, so the mark cannot collide with other uses of marks. */
export function denyBecause(reason: DenialReason, rule = 0): string {
  return `meta mark set ${denialMark(reason, rule)} goto denied`;
}

export function denialMark(reason: DenialReason, rule = 0): number {
  return (REASONS.indexOf(reason) + 1) * 2 ** REASON_BITS + rule;
}

/** Null for a mark that is not ours. */
export function readDenialMark(
  mark: number,
): { readonly decidedBy: DenialReason; readonly rule: number | null } | null {
  const decidedBy = REASONS[Math.floor(mark / 2 ** REASON_BITS) - 1];
  if (decidedBy === undefined) return null;
  return { decidedBy, rule: decidedBy === 'rule' ? mark % 2 ** REASON_BITS : null };
}

/** The names of the marks in the static rules. */
export const DENIAL_DEFINITIONS: readonly string[] = REASONS.filter((reason) => reason !== 'rule').map(
  (reason) => `define by_${reason} = ${denialMark(reason)}`,
);
