import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { createLocalOrganization, createLocalSignInLink } from '@svc/server/local';
import { openBrowser, type Owner, type Page } from '../clients/open-browser.ts';
import { TestServer } from '../e2e/start-server.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const WAIT_MS = 60_000;

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

/** A real server on a real engine, with keys unless `--dev` is among its arguments, and a browser that reaches it and `others`. */
export async function startDashboard(
  t: Owner,
  args: readonly string[] = [],
  others: readonly string[] = [],
): Promise<Dashboard> {
  await buildDashboard();
  const server = await TestServer.start({ args, engineArgs: ['--isolation', 'container'] });
  t.after(() => server.destroy());
  const place = { dataFolder: server.engine.folder };
  if (!args.includes('--dev'))
    await createLocalOrganization(place, { slug: 'acme', name: 'Acme', owner: OWNER });
  const page = await openBrowser(t, `${server.url}/`, others);
  page.setDefaultTimeout(WAIT_MS);
  const complaints: string[] = [];
  page.on('console', (message) => {
    // An answer that is no success is told there too; whether it should be one is for the test to say.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  return { server, page, complaints };
}

/** The address of a link that signs somebody in once. */
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
