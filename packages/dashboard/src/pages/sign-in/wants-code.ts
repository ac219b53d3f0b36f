import { SvcError } from '@svc/sdk';

/** Whether the password or the link was right and a second factor is required. */
export function wantsCode(error: unknown): boolean {
  return SvcError.is(error) && error.details?.['needed'] === 'code';
}
