import { after, before, describe, test } from 'node:test';
import type { Isolation } from '@svc/contract/orchestrator';
import { CLAIMS } from './sections.ts';
import { prepareOutage } from './outage.ts';
import { PHASES, type Claim, type Phase, type Proof } from '../claim.ts';
import { Ground } from '../ground.ts';
import { PENDING_CLAIMS } from '../pending-claims.ts';

/** Claims about the server alone are proved with this class. */
const CLASS_OF_ONCE: Isolation = 'container';

/**
 * Proves every claim of the table on one class, each as a test of its own. They share a server, and sandboxes where they can.
 * With SVC_PROVE_PENDING those that do not hold yet are tried instead.
 */
export function proveClaims(isolation: Isolation): void {
  const table = process.env['SVC_PROVE_PENDING'] === undefined ? CLAIMS : PENDING_CLAIMS;
  const claims = table.filter(({ isOnce }) => !isOnce || isolation === CLASS_OF_ONCE);
  describe(`the specification on class ${isolation}`, { concurrency: false }, () => {
    let ground: Ground;
    before(async () => {
      ground = await Ground.start(isolation);
    });
    after(() => ground.destroy());
    for (const phase of PHASES) provePhase(phase, claims, () => ground);
  });
}

function provePhase(phase: Phase, all: readonly Claim[], groundOf: () => Ground): void {
  const claims = all.filter((claim) => claim.phase === phase);
  if (claims.length === 0) return;
  describe(phase, { concurrency: false }, () => {
    before(async () => {
      if (phase === 'outage') {
        await prepareOutage(groundOf());
        await groundOf().loseEngine();
      }
      if (phase === 'return') await groundOf().regainEngine();
    });
    for (const { id, says, proof } of claims) {
      if (isProof(proof)) test(`${id}: ${says}`, () => proof(groundOf()));
    }
  });
}

function isProof(proof: Claim['proof']): proof is Proof {
  return typeof proof === 'function';
}
