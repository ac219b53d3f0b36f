import { createHash } from 'node:crypto';
import { API_VERSION } from '@svc/contract/rest';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ServiceProblem } from '../../handlers/server/health.ts';
import type { DashboardBuild } from '../dashboard/dashboard-build.ts';
import { sendDashboard } from '../dashboard/register-dashboard.ts';
import { LANDING_SCRIPT, LANDING_STYLE } from './landing-style.ts';
import { renderLanding, type LandingFacts } from './render-landing.ts';

const hashOf = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
/** One style and one script, which the page holds itself, and a picture in its address; nothing else is loaded, run, sent or framed. */
const POLICY = `default-src 'none'; style-src ${hashOf(LANDING_STYLE)}; script-src ${hashOf(LANDING_SCRIPT)}; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

interface LandingParts {
  readonly problem: ServiceProblem;
  readonly needsKey: boolean;
  readonly dashboard: DashboardBuild | null;
}

/**
 * What a person or a program finds at the address of the server itself: the dashboard where it is built, or else how to begin, which
 * `/start` says too; a program gets the addresses of everything as JSON.
 */
export function registerLanding(server: FastifyInstance, parts: LandingParts): void {
  server.get('/', async (request, reply) => {
    const page = await parts.dashboard?.find('index.html');
    const facts = factsOf(request, parts, page !== undefined);
    if (!prefersHtml(request.headers.accept ?? '')) return sendFacts(reply, facts);
    return page === undefined ? sendPage(reply, facts) : sendDashboard(request, reply, page);
  });
  server.get('/start', async (request, reply) => {
    const page = await parts.dashboard?.find('index.html');
    return sendPage(reply, factsOf(request, parts, page !== undefined));
  });
}

function factsOf(
  request: FastifyRequest,
  { problem, needsKey }: LandingParts,
  hasDashboard: boolean,
): LandingFacts {
  return { url: urlOf(request), version: API_VERSION, needsKey, hasDashboard, trouble: problem() };
}

function sendFacts(reply: FastifyReply, facts: LandingFacts): FastifyReply {
  return ofThisCaller(reply)
    .header('content-type', 'application/json')
    .send(JSON.stringify(describe(facts)));
}

function sendPage(reply: FastifyReply, facts: LandingFacts): FastifyReply {
  return ofThisCaller(reply)
    .header('content-type', 'text/html; charset=utf-8')
    .header('content-security-policy', POLICY)
    .send(renderLanding(facts));
}

/** The addresses in it are those that this very caller came by. */
function ofThisCaller(reply: FastifyReply): FastifyReply {
  return reply.header('cache-control', 'no-store').header('vary', 'Accept, Host');
}

function describe({ url, version, needsKey, trouble }: LandingFacts): object {
  return {
    name: 'svc',
    version,
    needs_key: needsKey,
    healthy: trouble === null,
    health: `${url}/api/v1/health`,
    docs: `${url}/docs`,
    openapi: `${url}/openapi.json`,
    rest: `${url}/v1`,
    rpc: `${url}/api/v1/rpc`,
    mcp: `${url}/mcp`,
  };
}

/** The guard has found the host to be a name of ours. What a proxy says of the scheme shows up in text alone. */
function urlOf({ headers }: FastifyRequest): string {
  const scheme = headers['x-forwarded-proto'] === 'https' ? 'https' : 'http';
  return `${scheme}://${headers.host ?? ''}`;
}

/** A request that names neither type gets JSON: it comes from a program such as curl. */
function prefersHtml(accept: string): boolean {
  return qualityOf('text/html', accept) > qualityOf('application/json', accept);
}

/** 0 when it is not named. */
function qualityOf(type: string, accept: string): number {
  const part = accept
    .toLowerCase()
    .split(',')
    .map((text) => text.trim().split(/\s*;\s*/))
    .find(([name]) => name === type);
  if (part === undefined) return 0;
  const quality = Number(part.find((text) => text.startsWith('q='))?.slice(2) ?? 1);
  return Number.isNaN(quality) ? 0 : quality;
}
