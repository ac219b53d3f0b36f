import type { Sealer } from '../secrets/sealer.ts';

const REQUEST = 'idempotency request';
const BODY = 'idempotency body';

/** What is kept of a request to recognize it by: `<request>` or `<request>:<body>`, from which nobody can guess either. */
export interface Fingerprint {
  readonly text: string;
  /** Whether what is kept is of the same request. A streamed body is compared later, when it was read. */
  isSame(stored: string): boolean;
  /** With the digest of a streamed body. */
  withBody(digest: string): string;
  /** True also when one of them has no body. */
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
