import type { RestCall } from '../../dispatch/rest-call.ts';

/** The published client of the reference product, which expects other answers than the documented ones. */
const REFERENCE_CLIENT = /^microsandbox-sdk\//;

export function isReferenceClient({ userAgent }: Pick<RestCall, 'userAgent'>): boolean {
  return REFERENCE_CLIENT.test(userAgent);
}
