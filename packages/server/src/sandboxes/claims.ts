import { randomUUID } from 'node:crypto';
import { claimSandbox, releaseSandbox } from '../store/claims.ts';
import type { Database } from '../store/database.ts';
import type { DesiredState } from '../store/sandbox-moves.ts';
import { getSandbox } from '../store/sandboxes.ts';

/**
 * A lock on a sandbox, so that one server of many works on it.
 * - `take` gives undefined while another server holds it. The holder releases it by disposing of it.
 * - A lock of a server that died expires soon after.
 * - `onChange` is called when the desired state of the sandbox changes, also through another server.
 */
export interface Claims {
  take(
    sandbox: { readonly id: string; readonly desired: DesiredState },
    onChange: () => void,
  ): Promise<AsyncDisposable | undefined>;
}

/** For a store that only this server uses. */
export const NO_CLAIMS: Claims = {
  take: async () => await Promise.resolve({ [Symbol.asyncDispose]: async () => await Promise.resolve() }),
};

const LEASE_MS = 10_000;
const RENEW_MS = 1000;

/** Several servers work on one store: each takes a lease on the row before it works on its sandbox. */
export function rowClaims(db: Database): Claims {
  const server = randomUUID();
  return {
    take: async ({ id, desired }, onChange) => {
      if (!(await claimSandbox(db, id, server, LEASE_MS))) return undefined;
      let isRenewed = Promise.resolve();
      const renew = async () => {
        if (!(await claimSandbox(db, id, server, LEASE_MS))) return;
        if ((await getSandbox(db, id))?.desired !== desired) onChange();
      };
      const renewal = setInterval(() => {
        // A renewal that fails is repeated long before the lease expires.
        isRenewed = isRenewed.then(renew).catch(() => undefined);
      }, RENEW_MS);
      renewal.unref();
      return {
        [Symbol.asyncDispose]: async () => {
          clearInterval(renewal);
          // A renewal in progress would take the lease again after it was released.
          await isRenewed;
          await releaseSandbox(db, id, server);
        },
      };
    },
  };
}
