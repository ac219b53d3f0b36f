import { MAX_LABELS, RESERVED_LABEL_PREFIXES, type SandboxSpec } from '@svc/contract';
import type { ResolvedSpec } from '@svc/contract/orchestrator';

const MAX_KEY_LENGTH = 256;
const MAX_VALUE_LENGTH = 4096;

/**
 * The labels of a sandbox: its image's and its own, which take precedence. An image may have any labels, so only valid ones are taken,
 * sorted by name, up to the limit.
 */
export function labelsOf(
  { labels: own = {} }: Pick<SandboxSpec, 'labels'>,
  { labels: image }: Pick<ResolvedSpec, 'labels'>,
): Readonly<Record<string, string>> {
  const taken = Object.entries(image)
    .filter(([key, value]) => isLegal(key, value) && !Object.hasOwn(own, key))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, Math.max(0, MAX_LABELS - Object.keys(own).length));
  return { ...Object.fromEntries(taken), ...own };
}

function isLegal(key: string, value: string): boolean {
  const isShort = key.length > 0 && key.length <= MAX_KEY_LENGTH && value.length <= MAX_VALUE_LENGTH;
  const isReserved = RESERVED_LABEL_PREFIXES.some((prefix) => key.startsWith(prefix));
  return isShort && !isReserved && !`${key}${value}`.includes('\0');
}
