import type { RestCall } from '../../dispatch/rest-call.ts';

/** The published client of the reference product, which decodes other answers than those that are documented. */
const REFERENCE_CLIENT = /^microsandbox-sdk\//;

export function isReferenceClient({ userAgent }: Pick<RestCall, 'userAgent'>): boolean {
  return REFERENCE_CLIENT.test(userAgent);
}
