import type { EventPattern } from '@svc/contract/rest';

/** Repeatable. The server knows which there are, and says so. */
export function collectEvent(
  text: string,
  before: readonly EventPattern[] | undefined,
): readonly EventPattern[] {
  return [...(before ?? []), text as EventPattern];
}
