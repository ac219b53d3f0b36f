import { Client } from '@svc/sdk';
import { sendFile } from './send-file.ts';

/** A header that pages of other origins cannot send; without it the server refuses changes by cookie (CSRF). */
const PAGE_HEADER = 'x-svc-page';

const clients = new Map<string | null, Client>();

/**
 * The client of the SDK, for an organization or, with null, for the user's own resources. It holds no credential: the browser sends
 * the session's HttpOnly cookie.
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
