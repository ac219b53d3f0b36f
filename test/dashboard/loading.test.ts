import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, Sandbox } from '@svc/sdk';
import { createLocalToken } from '@svc/server/local';
import { BUSYBOX } from '../engine/start-engine.ts';
import { IN_A_BROWSER, OWNER, signIn, startDashboard } from './dashboard-fixture.ts';

/** Above this, people notice that the page moved: https://web.dev/articles/cls */
const MAX_SHIFT = 0.1;
const PAGES = ['', '/sandboxes', '/images', '/volumes', '/usage', '/members', '/settings'];

const SUM_SHIFTS = `window.shifts = 0;
new PerformanceObserver((list) => {
  for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) window.shifts += value;
}).observe({ type: 'layout-shift', buffered: true });`;
/** What the browser has drawn by now is counted. */
const SHIFTS = `new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(window.shifts), 50)))`;

test('pages keep their layout while they load, on a slow line too', IN_A_BROWSER, async (t) => {
  const dashboard = await startDashboard(t);
  const { page, server, complaints } = dashboard;
  const { secret } = await createLocalToken({ dataFolder: server.engine.folder }, OWNER, { name: 'test' });
  const client = new Client({ apiUrl: server.url, apiKey: secret, organization: 'acme' });
  for (const name of ['one', 'two', 'three', 'four', 'five'])
    await Sandbox.create({ client, name, image: BUSYBOX });
  await signIn(dashboard);
  await page.addInitScript({ content: SUM_SHIFTS });
  const network = await page.context().newCDPSession(page);
  const limits = { offline: false, latency: 400, downloadThroughput: -1, uploadThroughput: -1 };
  await network.send('Network.emulateNetworkConditions', limits);

  for (const path of PAGES)
    await t.test(`/orgs/acme${path}`, async () => {
      await page.goto(`${server.url}/orgs/acme${path}`);
      await page.locator('main .loading').first().waitFor({ state: 'attached' });
      await page.locator('main .loading').first().waitFor({ state: 'detached' });
      const shift = Number(await page.evaluate(SHIFTS));
      assert.ok(shift <= MAX_SHIFT, `the layout shifted by ${shift.toFixed(3)}`);
    });

  await t.test('a table has its head in place before its rows are there', async () => {
    const top = `document.querySelector('main thead').getBoundingClientRect().top`;
    await page.goto(`${server.url}/orgs/acme/sandboxes`);
    await page.locator('tbody.loading').waitFor({ state: 'attached' });
    const before = await page.evaluate(top);
    await page.getByRole('link', { name: 'five' }).waitFor();
    assert.equal(await page.evaluate(top), before);
  });

  await t.test('without prices there is usage, and no amount of money', async () => {
    for (const path of ['', '/usage']) {
      await page.goto(`${server.url}/orgs/acme${path}`);
      await page.getByRole('region', { name: 'This month' }).getByText('vCPU').first().waitFor();
      assert.equal(await page.getByText('$').count(), 0, path);
    }
  });

  await t.test('a copy works over plain HTTP too, where scripts have no clipboard', async () => {
    await page.goto(`${server.url}/orgs/acme/sandboxes/new`);
    await page.evaluate(`Object.defineProperty(navigator, 'clipboard', { value: undefined });
      document.addEventListener('copy', () => { window.copied = document.activeElement.value; })`);
    await page.getByRole('button', { name: 'Copy: Command line' }).click();
    assert.match(String(await page.evaluate('window.copied')), /^svc run --detach/);
    assert.match(
      String(await page.evaluate('document.activeElement.ariaLabel')),
      /Copy/,
      'the button keeps the keyboard',
    );
    await page.goto(`${server.url}/start`);
    await page.getByRole('button', { name: 'Copy: REST' }).click();
    await page.getByText(/Copied|Press Ctrl-C/).waitFor();
  });

  assert.deepEqual(complaints, []);
});
