import { PlatformError } from '@svc/contract/errors';
import { SvcError } from '@svc/sdk';

/** SSH keys belong to users. Adds to a refused API key that a user's token is needed. */
export async function asUser<T>(work: Promise<T>): Promise<T> {
  return await work.catch((error: unknown) => {
    if (!SvcError.is(error, 'invalid_api_key')) throw error;
    const message =
      'SSH keys belong to users: this takes a valid personal access token, not an API key\n' +
      '  try: export SVC_API_KEY=$(svc token create --user YOU@EXAMPLE.COM), where the server runs';
    // A message of its own, because the hint for a wrong API key would mislead.
    throw new PlatformError('forbidden', message, { cause: error });
  });
}
