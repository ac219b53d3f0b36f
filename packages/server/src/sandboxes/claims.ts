import { randomUUID } from 'node:crypto';
import { claimSandbox, releaseSandbox } from '../store/claims.ts';
import type { Database } from '../store/database.ts';
import type { DesiredState } from '../store/sandbox-moves.ts';
import { getSandbox } from '../store/sandboxes.ts';

/**
 * Lets one server of many work on a sandbox.
 * - `take` gives undefined while another server has it. The holder gives it back by disposing of it.
 * - What a server that died had can be taken soon after.
 * - `onChange` is called when somebody wants something else of the sandbox, also through another server.
 */
export interface Claims {
  take(
    sandbox: { readonly id: string; readonly desired: DesiredState },
    onChange: () => void,
  ): Promise<AsyncDisposable | undefined>;
}

/** The store belongs to this server alone. */
export const NO_CLAIMS: Claims = {
  take: async () => await Promise.resolve({ [Symbol.asyncDispose]: async () => await Promise.resolve() }),
};

const LEASE_MS = 10_000;
const RENEW_MS = 1000;

/** Several servers work on one store: each takes a row before it works on its sandbox. */
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
        // A renewal that fails is tried again long before the lease is over.
        isRenewed = isRenewed.then(renew).catch(() => undefined);
      }, RENEW_MS);
      renewal.unref();
      return {
        [Symbol.asyncDispose]: async () => {
          clearInterval(renewal);
          // One that is under way would take it again after it was given back.
          await isRenewed;
          await releaseSandbox(db, id, server);
        },
      };
    },
  };
}
