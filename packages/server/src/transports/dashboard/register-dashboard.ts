import { PlatformError } from '@svc/contract';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { BuiltFile, DashboardBuild } from './dashboard-build.ts';

/**
 * Content security policy: scripts and styles are files of this server; nothing is inline, evaluated from text,
 * loaded from or sent to other servers, or framed. Trusted types make the browser refuse to parse markup from strings
 * of scripts.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const PAGE_HEADERS = {
  'content-security-policy': POLICY,
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  // Revalidated on each load, at the cost of an answer without a body, because it names the assets of the latest
  // build.
  'cache-control': 'no-cache',
} as const;
const A_YEAR = 'public, max-age=31536000, immutable';

/** Paths of dashboard pages, beside `/`. No operation has one of them: the framework refuses duplicate routes. */
const PAGES = [
  '/sign-in',
  '/sign-in/provider',
  '/sign-up',
  '/invite',
  '/account',
  '/account/*',
  '/orgs',
  '/orgs/*',
];

/** Serves the dashboard at its own paths; `/` belongs to the landing page, which hands it on. */
export function registerDashboard(server: FastifyInstance, build: DashboardBuild): void {
  for (const path of PAGES) {
    server.get(path, async (request, reply) => {
      const page = await build.find('index.html');
      if (page === undefined) throw notBuilt();
      return sendDashboard(request, reply, page);
    });
  }
  server.get('/assets/*', async (request, reply) => {
    const { '*': name = '' } = request.params as Readonly<Record<string, string>>;
    // SAFETY: a lookup in a map of existing files; no path is built from the name.
    const file = await build.find(`assets/${name}`);
    if (file === undefined)
      throw new PlatformError('not_found', 'There is no such asset; load the page again');
    return send(request, reply, file, { 'cache-control': A_YEAR });
  });
}

export function sendDashboard(request: FastifyRequest, reply: FastifyReply, page: BuiltFile): FastifyReply {
  return send(request, reply, page, PAGE_HEADERS);
}

function send(
  request: FastifyRequest,
  reply: FastifyReply,
  { type, etag, plain, encoded }: BuiltFile,
  headers: Readonly<Record<string, string>>,
): FastifyReply {
  reply
    .headers(headers)
    .header('content-type', type)
    .header('etag', etag)
    .header('vary', 'Accept, Accept-Encoding');
  if (request.headers['if-none-match'] === etag) return reply.code(304).send();
  const accepted = request.headers['accept-encoding'] ?? '';
  for (const [name, bytes] of encoded) {
    if (accepts(accepted, name)) return reply.header('content-encoding', name).send(bytes);
  }
  return reply.send(plain);
}

function accepts(header: string, encoding: string): boolean {
  const part = header
    .toLowerCase()
    .split(',')
    .map((text) => text.trim().split(/\s*;\s*/))
    .find(([name]) => name === encoding);
  return part !== undefined && !part.some((text) => /^q=0(\.0*)?$/.test(text));
}

function notBuilt(): PlatformError {
  return new PlatformError('not_found', 'The dashboard is not built here; run make setup');
}
