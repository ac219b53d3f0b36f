import { createHash, timingSafeEqual } from 'node:crypto';
import type { Sealer } from '../../../secrets/sealer.ts';

/**
 * - `envd`: opens processes, files and code of a sandbox; E2B's clients get it with the sandbox and send it as `X-Access-Token`.
 * - `traffic`: opens its ports, and its code contexts.
 * - `volume`: opens the files of a volume.
 */
export type TokenKind = 'envd' | 'traffic' | 'volume';

/** What a token opens. */
export interface TokenTarget {
  readonly kind: TokenKind;
  /** Of the sandbox or the volume. */
  readonly id: string;
}

const SEPARATOR = '~';

/**
 * Tokens of E2B's clients. Each names the credential that it was given to (`makerOf`), so that it ends with it, and is derived from
 * the id and the keys of the server, so that nothing is stored.
 */
export class SandboxTokens {
  readonly #sealer: Pick<Sealer, 'mark' | 'isMarkOf'>;

  constructor(sealer: Pick<Sealer, 'mark' | 'isMarkOf'>) {
    this.#sealer = sealer;
  }

  tokenOf({ kind, id }: TokenTarget, by: string): string {
    return `${by}${SEPARATOR}${this.#sealer.mark(textOf(id, by), contextOf(kind))}`;
  }

  /** The credential that a token was given to; undefined when it does not open this. The caller checks that the credential is good. */
  makerOf({ kind, id }: TokenTarget, token: string): string | undefined {
    const at = token.indexOf(SEPARATOR);
    if (at < 0) return undefined;
    const by = token.slice(0, at);
    return this.#sealer.isMarkOf(token.slice(at + 1), textOf(id, by), contextOf(kind)) ? by : undefined;
  }

  /** The credential with whose token of this sandbox a link to a file was signed, of those that are tried. */
  signerOf(sandboxId: string, link: SignedLink, tried: readonly string[]): string | undefined {
    const { path, operation, user, expiration, signature } = link;
    const given = Buffer.from(signature);
    return tried.find((by) => {
      const words = [path, operation, user, this.tokenOf({ kind: 'envd', id: sandboxId }, by)];
      const text = [...words, ...(expiration === null ? [] : [expiration])].join(':');
      const hash = createHash('sha256').update(text).digest('base64').replace(/=+$/, '');
      const made = Buffer.from(`v1_${hash}`);
      return made.length === given.length && timingSafeEqual(made, given);
    });
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

/** Both parts in places of their own, so that no two targets have the same text. */
function textOf(id: string, by: string): string {
  return JSON.stringify([id, by]);
}

function contextOf(kind: TokenKind): string {
  return `e2b ${kind} token`;
}
