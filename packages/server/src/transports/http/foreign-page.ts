import type { IncomingHttpHeaders } from 'node:http';

/**
 * Whether a page of another origin asks for it, be it with a tag (a picture, a script, a frame) that sends no `Origin`. People who follow
 * a link do not count, nor what says nothing: a program, or a browser on an address without TLS.
 */
export function isForeignPage({
  'sec-fetch-site': site,
  'sec-fetch-mode': mode,
  'sec-fetch-dest': target,
}: IncomingHttpHeaders): boolean {
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  return !(mode === 'navigate' && target === 'document');
}
