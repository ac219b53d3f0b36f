import { UsageError } from '../usage-error.ts';

/** The address of a user; on the machine of the server any user may be named. @throws UsageError */
export function requireEmail(email: string | undefined): string {
  if (email !== undefined) return email;
  throw new UsageError('say whose token is meant\n  try: --user YOU@EXAMPLE.COM');
}
