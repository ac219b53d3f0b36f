import { createHash, timingSafeEqual } from 'node:crypto';
import type { Sealer } from '../../../secrets/sealer.ts';

/**
 * - `envd`: opens processes, files and code of a sandbox; E2B's clients get it with the sandbox and send it as `X-Access-Token`.
 * - `traffic`: opens its ports, and its code contexts.
 * - `volume`: opens the files of a volume.
 */
export type TokenKind = 'envd' | 'traffic' | 'volume';

/**
 * Tokens of E2B's clients. Derived from the id and the keys of the server, so that nothing is stored: a token is valid as long as its
 * sandbox or volume exists.
 */
export class SandboxTokens {
  readonly #sealer: Pick<Sealer, 'mark' | 'isMarkOf'>;

  constructor(sealer: Pick<Sealer, 'mark' | 'isMarkOf'>) {
    this.#sealer = sealer;
  }

  tokenOf(kind: TokenKind, id: string): string {
    return this.#sealer.mark(id, contextOf(kind));
  }

  isTokenOf(kind: TokenKind, id: string, token: string): boolean {
    return this.#sealer.isMarkOf(token, id, contextOf(kind));
  }

  /** Whether a link to a file was signed with the token of this sandbox. */
  isSignedFor(sandboxId: string, link: SignedLink): boolean {
    const { path, operation, user, expiration, signature } = link;
    const words = [path, operation, user, this.tokenOf('envd', sandboxId)];
    const text = [...words, ...(expiration === null ? [] : [expiration])].join(':');
    const hash = createHash('sha256').update(text).digest('base64').replace(/=+$/, '');
    const [made, given] = [Buffer.from(`v1_${hash}`), Buffer.from(signature)];
    return made.length === given.length && timingSafeEqual(made, given);
  }
}

export interface SignedLink {
  readonly path: string;
  readonly operation: 'read' | 'write';
  readonly user: string;
  /** As it is in the link; null: the link does not expire. */
  readonly expiration: string | null;
  readonly signature: string;
}

function contextOf(kind: TokenKind): string {
  return `e2b ${kind} token`;
}
