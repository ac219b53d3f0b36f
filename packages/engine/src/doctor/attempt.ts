import type { Attempt } from './host-facts.ts';

/** Turns a try that throws into a finding. */
export async function attempt(tryIt: () => Promise<unknown>): Promise<Attempt> {
  try {
    await tryIt();
    return { outcome: 'worked' };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { outcome: 'failed', reason: message.trim().split('\n').at(-1) ?? '' };
  }
}
