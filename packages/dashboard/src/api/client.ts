import { Client } from '@svc/sdk';
import { sendFile } from './send-file.ts';

/** Pages elsewhere cannot send it; with the session's cookie alone the server changes nothing. */
const PAGE_HEADER = 'x-svc-page';

const clients = new Map<string | null, Client>();

/**
 * The client of the SDK, for an organization or, with null, for what belongs to the user alone. It holds no credential: the browser
 * sends the cookie of the session, which no script can read.
 */
export function clientOf(organization: string | null): Client {
  const known = clients.get(organization);
  if (known !== undefined) return known;
  const client = new Client({
    apiUrl: location.origin,
    ...(organization === null ? {} : { organization }),
    maxRetries: 1,
    fetch: sendAsPage,
  });
  clients.set(organization, client);
  return client;
}

const sendAsPage: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set(PAGE_HEADER, '1');
  if (init?.body instanceof Blob && typeof input === 'string')
    return sendFile(input, { ...init, headers, body: init.body });
  return fetch(input, { ...init, headers, credentials: 'same-origin' });
};
