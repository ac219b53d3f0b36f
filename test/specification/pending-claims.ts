import type { Claim } from './claim.ts';

/**
 * Rows whose implementation has not landed. They are not part of the run, and can be tried with SVC_PROVE_PENDING=1. To switch a
 * group on, move it into its section in claims/sections.ts.
 */
export const PENDING_CLAIMS: readonly Claim[] = [];
