import type { EventPattern } from '@svc/contract/rest';

/** Repeatable. The server checks the patterns and lists the valid ones. */
export function collectEvent(
  text: string,
  before: readonly EventPattern[] | undefined,
): readonly EventPattern[] {
  return [...(before ?? []), text as EventPattern];
}
