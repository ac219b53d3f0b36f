import type { IncomingHttpHeaders } from 'node:http';

/**
 * Whether a page of another origin makes the request, including elements (pictures, scripts, frames) that send no
 * `Origin`. Navigation by a link does not count, nor do requests without these headers: a program, or a browser on an
 * address without TLS.
 */
export function isForeignPage({
  'sec-fetch-site': site,
  'sec-fetch-mode': mode,
  'sec-fetch-dest': target,
}: IncomingHttpHeaders): boolean {
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  return !(mode === 'navigate' && target === 'document');
}
