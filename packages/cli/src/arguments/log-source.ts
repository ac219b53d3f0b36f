import { InvalidArgumentError } from 'commander';
import type { LogSource } from '@svc/sdk';

const SOURCES: readonly LogSource[] = ['stdout', 'stderr', 'output', 'system'];

/** A stream of a sandbox's log, given any number of times. */
export function collectSource(text: string, earlier: readonly LogSource[] = []): readonly LogSource[] {
  const source = SOURCES.find((known) => known === text);
  if (source === undefined) throw new InvalidArgumentError(`Give one of ${SOURCES.join(', ')}.`);
  return [...earlier, source];
}
