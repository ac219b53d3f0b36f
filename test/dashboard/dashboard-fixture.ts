import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { createLocalOrganization, createLocalOwnerLink, createLocalSignInLink } from '@svc/server/local';
import { freePort } from '../../packages/server/src/testing/free-port.ts';
import { openBrowser, type Owner, type Page } from '../clients/open-browser.ts';
import { TestServer } from '../e2e/start-server.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const WAIT_MS = 60_000;
/** Of a test that is a dozen of them on one server and in one browser: the runner's limit is for each, and a busy machine slow. */
export const IN_A_BROWSER = { timeout: 540_000 };

export const OWNER = 'ann@example.com';

export interface Dashboard {
  readonly server: TestServer;
  readonly page: Page;
  /** What the browser complained about: a policy that was broken, a script that failed. */
  readonly complaints: readonly string[];
}

/** Nothing when the build is in step with its sources. */
export async function buildDashboard(): Promise<void> {
  await promisify(execFile)(process.execPath, [join(ROOT, 'scripts/build-dashboard.ts')]);
}

interface DashboardOptions {
  /** Of the server; without `--dev` it asks for keys. */
  readonly args?: readonly string[];
  /** What the browser reaches beside the server. */
  readonly others?: readonly string[];
  /** Without accounts. */
  readonly isNew?: boolean;
}

/** A real server on a real engine, and a browser that reaches it. */
export async function startDashboard(
  t: Owner,
  { args = [], others = [], isNew = false }: DashboardOptions = {},
): Promise<Dashboard> {
  await buildDashboard();
  // One that stays when the server, or a process of it, is replaced.
  const port = ['--port', String(await freePort())];
  const server = await TestServer.start({
    args: [...port, ...args],
    engineArgs: ['--isolation', 'container'],
  });
  t.after(() => server.destroy());
  if (!isNew && !args.includes('--dev')) await makeOrganization(server);
  const page = await openBrowser(t, `${server.url}/`, others);
  page.setDefaultTimeout(WAIT_MS);
  const complaints: string[] = [];
  page.on('console', (message) => {
    // An answer that is no success is told there too; whether it should be one is for the test to say.
    const isAnswer = /^(Failed to load resource|WebSocket connection to)/.test(message.text());
    if (message.type() === 'error' && !isAnswer) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  return { server, page, complaints };
}

/** With one owner. */
export async function makeOrganization({ engine }: TestServer): Promise<void> {
  await createLocalOrganization({ dataFolder: engine.folder }, { slug: 'acme', name: 'Acme', owner: OWNER });
}

/** The address of the link that the first start prints for the owner. */
export async function ownerAddress({ server }: Dashboard): Promise<string> {
  const { secret } = await createLocalOwnerLink({ dataFolder: server.engine.folder }, '1h');
  return `${server.url}/sign-up#owner=${secret}`;
}

/** The address of a link that signs a user in once. */
export async function signInAddress({ server }: Dashboard, email = OWNER): Promise<string> {
  const { secret } = await createLocalSignInLink({ dataFolder: server.engine.folder }, email, '1h');
  return `${server.url}/sign-in#link=${secret}`;
}

/** Through the door, without a password. */
export async function signIn(dashboard: Dashboard, email = OWNER): Promise<void> {
  const { page } = dashboard;
  await page.goto(await signInAddress(dashboard, email));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Later' }).click();
  await page.getByRole('navigation', { name: 'Main' }).waitFor({ state: 'attached' });
}
