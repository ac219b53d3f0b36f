import { UsageError } from '../usage-error.ts';

/** On the machine of the server anybody may be meant. @throws UsageError */
export function requireEmail(email: string | undefined): string {
  if (email !== undefined) return email;
  throw new UsageError('say whose token is meant\n  try: --user YOU@EXAMPLE.COM');
}
