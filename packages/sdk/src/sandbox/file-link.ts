import { callOptionsOf, type CallOptions } from '../client/call-budget.ts';
import type { Client } from '../client/client.ts';

/** A link for programs and pages that have no key: to read or to write one file, until it ends. */
export interface FileLink {
  readonly url: string;
  /** `PUT`: the body of the request becomes the file. */
  readonly method: 'GET' | 'PUT';
  /** Absolute, in the sandbox. */
  readonly path: string;
  readonly expiresAt: Date;
}

export interface LinkOptions extends CallOptions {
  /** `GET` unless given. */
  readonly method?: 'GET' | 'PUT';
  /** An hour unless given, a week at most. */
  readonly expiresInSecs?: number;
  /** Of a file that is written: `user` or `user:group`. */
  readonly owner?: string;
  /** Permission bits of a file that is written. */
  readonly mode?: number;
  /** Makes the folders that lead to a file that is written. */
  readonly parents?: boolean;
}

const OCTAL = 8;

export async function makeFileLink(
  client: Client,
  sandboxId: string,
  path: string,
  options: LinkOptions,
): Promise<FileLink> {
  const call = callOptionsOf(options, {
    method: true,
    expiresInSecs: true,
    owner: true,
    mode: true,
    parents: true,
  });
  const { method = 'GET', expiresInSecs, owner, mode, parents } = options;
  const body = {
    path,
    method,
    ...(expiresInSecs === undefined ? {} : { expires_in_secs: expiresInSecs }),
    ...(owner === undefined ? {} : { owner }),
    ...(mode === undefined ? {} : { mode: mode.toString(OCTAL).padStart(4, '0') }),
    ...(parents === undefined ? {} : { parents }),
  };
  // The retry of a call whose answer was lost returns everything but the secret; a new call makes a new link.
  for (;;) {
    const made = await client.call('files.createLink', { params: { sandbox_id: sandboxId }, body }, call);
    if (made.address === null) continue;
    const url = `${client.apiUrl}${made.address}`;
    return { url, method, path: made.path, expiresAt: new Date(made.expires_at) };
  }
}
