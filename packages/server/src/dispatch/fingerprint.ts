import type { Sealer } from '../secrets/sealer.ts';

const REQUEST = 'idempotency request';
const BODY = 'idempotency body';

/**
 * Stored to recognize a repeated request: `<request>` or `<request>:<body>`, keyed digests that do not let a reader guess the content.
 */
export interface Fingerprint {
  readonly text: string;
  /** Whether the stored fingerprint is of the same request. A streamed body is compared later, once it was read. */
  isSame(stored: string): boolean;
  /** With the digest of a streamed body. */
  withBody(digest: string): string;
  /** True also when one of the two has no body. */
  isSameBody(stored: string, digest: string | undefined): boolean;
}

export function fingerprintOf(sealer: Sealer, identity: string): Fingerprint {
  const text = sealer.mark(identity, REQUEST);
  return {
    text,
    isSame: (stored) => sealer.isMarkOf(stored.split(':')[0] ?? '', identity, REQUEST),
    withBody: (digest) => `${text}:${sealer.mark(digest, BODY)}`,
    isSameBody: (stored, digest) => {
      const body = stored.split(':')[1];
      return body === undefined || digest === undefined || sealer.isMarkOf(body, digest, BODY);
    },
  };
}
