import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Client, Sandbox } from '@svc/sdk';
import { createLocalToken } from '@svc/server/local';
import { importPython } from '../engine/interpreter-images.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import type { Page } from '../clients/open-browser.ts';
import { checkAccessible, SCHEMES, SETTLED, SIZES } from './check-accessible.ts';
import { OWNER, signIn, startDashboard } from './dashboard-fixture.ts';

/** Pictures of every page for people to look at, light and dark, wide and narrow, each examined by axe. `make pictures FOLDER=…` */
const folder = resolve(process.argv[2] ?? join(tmpdir(), 'svc-pictures'));
mkdirSync(folder, { recursive: true });
const CODE = `import statistics

def mean(values):  # of numbers
    return statistics.fmean(values)

for count in (10, 100, 1000):
    print(f"mean of {count}:", mean(range(count)))
`;

await using ends = new AsyncDisposableStack();
const args = ['--preview-domain', 'localhost'];
const dashboard = await startDashboard({ after: (end) => ends.defer(end) }, { args });
const { page, server } = dashboard;
await take(page, 'sign-in', '/sign-in');
await signIn(dashboard);
await take(page, 'overview-empty', '/orgs/acme');
await take(page, 'sandboxes-empty', '/orgs/acme/sandboxes');
const [id, failed] = await fill();
await take(page, 'overview', '/orgs/acme');
await take(page, 'sandboxes', '/orgs/acme/sandboxes');
await take(page, 'new', '/orgs/acme/sandboxes/new');
for (const view of [
  '',
  '/terminal',
  '/logs',
  '/files',
  '/ports',
  '/charts',
  '/processes',
  '/network',
  '/events',
])
  await take(page, `sandbox${view.replace('/', '-')}`, `/orgs/acme/sandboxes/${id}${view}`);
const code = `/orgs/acme/sandboxes/${id}/code`;
await take(page, 'sandbox-code-empty', code);
await take(page, 'sandbox-code', code, async () => {
  await page.getByRole('textbox', { name: 'Code', exact: true }).press('Control+A');
  await page.keyboard.insertText(CODE);
  await page.keyboard.press('Control+Enter');
  await page.getByText('Finished.').waitFor();
});
await take(page, 'sandbox-file', `/orgs/acme/sandboxes/${id}/files?path=/tmp`, async () => {
  await page.getByRole('button', { name: 'mean.py', exact: true }).click();
  await page.locator('.cm-editor').waitFor();
});
for (const name of [
  'images',
  'snapshots',
  'volumes',
  'secrets',
  'usage',
  'audit',
  'keys',
  'members',
  'webhooks',
  'settings',
])
  await take(page, name, `/orgs/acme/${name}`);
await take(page, 'failed', `/orgs/acme/sandboxes/${failed}`);
await take(page, 'new-like-failed', `/orgs/acme/sandboxes/new?from=${failed}`);
await take(page, 'account', '/account');
await take(page, 'start', '/start');
await take(page, 'not-found', '/orgs/acme/nothing');

/** Gives the ids of one that runs and of one that failed. */
async function fill(): Promise<readonly [string, string]> {
  const place = { dataFolder: server.engine.folder };
  const { secret } = await createLocalToken(place, OWNER, { name: 'pictures' });
  const client = new Client({ apiUrl: server.url, apiKey: secret, organization: 'acme' });
  const labels = { team: 'web', stage: 'test' };
  await importPython(server.engine);
  const cmd = ['sh', '-c', 'while :; do date; sleep 1; done'];
  const spec = { runtime: { cmd } };
  const shown = await Sandbox.create({ client, name: 'api-tests', image: 'python', labels, spec });
  await shown.files.write('/tmp/mean.py', CODE);
  await Sandbox.create({ client, name: 'notebook-7', image: BUSYBOX, labels: { team: 'data' } });
  const stopped = await Sandbox.create({ client, name: 'nightly-build', image: BUSYBOX });
  await stopped.stop();
  const failed = await client.call('sandboxes.create', {
    body: { name: 'from-nowhere', image: { type: 'oci', reference: 'nowhere/none' }, pull_policy: 'never' },
    query: { start: true },
  });
  await shown.snapshot('clean');
  await client.call('volumes.create', { body: { name: 'datasets', capacity_gib: 2 } });
  await client.call('secrets.put', {
    params: { name: 'API_TOKEN' },
    body: { value: 'for pictures', allowed_hosts: [{ type: 'exact', value: 'api.example.com' }] },
  });
  return [shown.id, failed.id];
}

/** With `prepare`, what is there once that has been done. */
async function take(at: Page, name: string, path: string, prepare?: () => Promise<void>): Promise<void> {
  await at.goto(`${server.url}${path}`);
  await at.getByRole('heading').first().waitFor();
  await prepare?.();
  for (const [size, viewport] of Object.entries(SIZES)) {
    await at.setViewportSize(viewport);
    for (const colorScheme of SCHEMES) {
      await at.emulateMedia({ colorScheme });
      await at.evaluate(SETTLED);
      // What is asked for once the page is there, too.
      await at.evaluate('new Promise((resolve) => setTimeout(resolve, 700))');
      await checkAccessible(at, `${name}, ${size}, ${colorScheme}`).catch(report);
      await at.screenshot({ path: join(folder, `${name}-${size}-${colorScheme}.png`), fullPage: true });
    }
  }
  // On a phone the navigation is folded away, and what follows looks for it.
  await at.setViewportSize(SIZES.wide);
  console.log(name);
}

/** Reports a finding; all pictures are taken all the same. */
function report(finding: unknown): void {
  console.error(String(finding));
  process.exitCode = 1;
}
