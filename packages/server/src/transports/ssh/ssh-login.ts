import type { AuthContext } from 'ssh2';
import ssh2 from 'ssh2';
import type { Database } from '../../store/database.ts';
import { findPublicKey, findSshAccess, type SshAccess } from '../../store/ssh-keys.ts';
import { fingerprintOf } from '../../access/ssh-public-key.ts';

const SLUG = /^[a-z0-9-]{3,63}$/;
const METHODS: 'publickey'[] = ['publickey'];

/**
 * Authenticates SSH clients: the user name is a sandbox's slug, the key must be registered by a member of its
 * organization. The slug is looked up only after the client has proven possession of a registered key, and a sandbox
 * of another organization is refused like one that does not exist. Whether a client may try a key depends on the key
 * alone.
 */
export class SshLogin {
  readonly #database: Database;
  readonly #maxAttempts: number;
  #attempts = 0;

  constructor(database: Database, maxAttempts: number) {
    this.#database = database;
    this.#maxAttempts = maxAttempts;
  }

  /**
   * Answers one authentication request; calls `grant` before it accepts the client. @returns whether the client may
   * try again
   */
  async answer(context: AuthContext, grant: (access: SshAccess) => void): Promise<'go on' | 'too many'> {
    if (context.method === 'none') {
      // The client queries the available methods.
      context.reject(METHODS);
      return 'go on';
    }
    this.#attempts += 1;
    if (this.#attempts > this.#maxAttempts) {
      context.reject();
      return 'too many';
    }
    const outcome = context.method === 'publickey' ? await this.#check(context) : undefined;
    if (outcome === undefined) context.reject(METHODS);
    else {
      if (outcome !== 'may sign') grant(outcome);
      context.accept();
    }
    return 'go on';
  }

  async #check(
    context: Extract<AuthContext, { method: 'publickey' }>,
  ): Promise<SshAccess | 'may sign' | undefined> {
    // RSA with SHA-1 can be forged.
    if (context.key.algo === 'ssh-rsa' && (context.hashAlgo ?? 'sha1') === 'sha1') return undefined;
    const fingerprint = fingerprintOf(context.key.data);
    const line = await findPublicKey(this.#database, fingerprint);
    const key = line === undefined ? undefined : ssh2.utils.parseKey(line);
    if (key === undefined || key instanceof Error) return undefined;
    const { signature, blob } = context;
    if (signature === undefined || blob === undefined) return 'may sign';
    // SAFETY: compared with true, because `verify` returns an Error for an unreadable signature, contrary to its
    // type.
    const verdict: unknown = key.verify(blob, signature, context.hashAlgo);
    if (verdict !== true || !SLUG.test(context.username)) return undefined;
    return await findSshAccess(this.#database, fingerprint, context.username);
  }
}
