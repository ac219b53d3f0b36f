import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, Sandbox } from '@svc/sdk';
import { createLocalToken } from '@svc/server/local';
import { BUSYBOX } from '../engine/start-engine.ts';
import { checkLooks } from './check-accessible.ts';
import { IN_A_BROWSER, OWNER, signIn, startDashboard } from './dashboard-fixture.ts';

const PAGE = 'hello from port 8080';
const SERVE = `mkdir -p /www; echo '${PAGE}' > /www/index.html; exec httpd -f -p 8080 -h /www`;

test('images, snapshots and ports are used from their pages', IN_A_BROWSER, async (t) => {
  const dashboard = await startDashboard(t, { args: ['--preview-domain', 'localhost'] });
  const { page, server, complaints } = dashboard;
  const { secret } = await createLocalToken({ dataFolder: server.engine.folder }, OWNER, { name: 'test' });
  const client = new Client({ apiUrl: server.url, apiKey: secret, organization: 'acme' });
  await signIn(dashboard);
  const go = (path: string) => page.goto(`${server.url}/orgs/acme/${path}`);

  await t.test('a failed sandbox shows its spec, and is created again with another image', async () => {
    const { id } = await client.call('sandboxes.create', {
      body: {
        name: 'broken',
        image: { type: 'oci', reference: 'nowhere/none' },
        pull_policy: 'never',
        labels: { team: 'web' },
        env: [{ key: 'GREETING', value: 'hi' }],
      },
      query: { start: true },
    });
    await go(`sandboxes/${id}`);
    await page.locator('.page-head [data-status=failed]').waitFor();
    await page.getByRole('heading', { name: 'Requested configuration' }).waitFor();
    await page.locator('.facts').getByText('nowhere/none').waitFor();
    await checkLooks(page, 'a failed sandbox');
    await page.getByRole('link', { name: 'Try again with another image' }).click();
    await page.getByText('Filled in from broken').waitFor();
    assert.equal(await page.getByRole('textbox', { name: 'Name' }).inputValue(), 'broken-2');
    assert.equal(await page.getByLabel('Environment', { exact: true }).inputValue(), 'GREETING=hi');
    assert.equal(await page.getByLabel('Labels', { exact: true }).inputValue(), 'team=web');
    assert.equal(await page.getByLabel('Network access').inputValue(), 'public');
    await page.getByText('Most that the operator of this server allows: public addresses').waitFor();
    await checkLooks(page, 'the form of another try');
    await page.getByLabel('Image', { exact: true }).fill(BUSYBOX);
    await page.getByLabel('Command', { exact: true }).fill(`sh -c "${SERVE}"`);
    await page.getByRole('button', { name: 'Create and start' }).click();
    await page.getByRole('heading', { name: 'broken-2' }).waitFor();
    await page.locator('.page-head [data-status=running]').waitFor();
  });

  await t.test('a listening port is offered, and its link opens and is revoked', async () => {
    await page.getByRole('link', { name: 'Ports', exact: true }).click();
    await page.getByRole('button', { name: 'Open port 8080' }).click();
    const link = await page.getByRole('status').locator('pre').innerText();
    assert.match(link, /^http:\/\/8080-[a-z0-9-]+\.localhost:\d+\//);
    await page.getByRole('cell', { name: '8080', exact: true }).waitFor();
    await checkLooks(page, 'ports');
    assert.equal((await (await fetch(link)).text()).trim(), PAGE);
    await page.getByLabel('Port', { exact: true }).fill('70000');
    await page.getByRole('button', { name: 'Open', exact: true }).click();
    assert.equal(await page.evaluate('document.activeElement.checkValidity()'), false);
    await page.getByRole('button', { name: 'Revoke the link to port 8080' }).click();
    await page.getByRole('button', { name: 'Revoke it' }).click();
    await page.getByText('No links and no public ports').waitFor();
    assert.notEqual((await fetch(link)).status, 200);
  });

  await t.test('a snapshot is made of it, starts another sandbox, and is deleted', async () => {
    await go('snapshots');
    await page.getByText('No snapshots yet').waitFor();
    await page.getByRole('button', { name: 'New snapshot' }).first().click();
    await page.getByLabel('Name').fill('with-page');
    await checkLooks(page, 'a new snapshot');
    await page.getByRole('button', { name: 'Create' }).click();
    await page.getByRole('cell', { name: 'with-page', exact: true }).waitFor();
    await checkLooks(page, 'snapshots');
    await page.getByRole('link', { name: 'Start a sandbox from with-page' }).click();
    assert.equal(await page.getByRole('textbox', { name: 'Snapshot' }).inputValue(), 'with-page');
    await page.getByText('svc run --detach --name NAME --snapshot with-page -').waitFor();
    await page.getByRole('textbox', { name: 'Name' }).fill('copy');
    await page.getByLabel('Command', { exact: true }).fill('sleep 600');
    await page.getByRole('button', { name: 'Create and start' }).click();
    await page.locator('.page-head [data-status=running]').waitFor();
    const copy = await Sandbox.connect(page.url().split('/').at(-1) ?? '', { client });
    assert.equal((await copy.files.readText('/www/index.html')).trim(), PAGE);
    copy.close();
    await go('snapshots');
    await page.getByRole('button', { name: 'Delete with-page' }).click();
    await page.getByRole('button', { name: 'Delete it' }).click();
    await page.getByText('No snapshots yet').waitFor();
  });

  await t.test('an image in use is kept, a missing one is reported, and one is started', async () => {
    await go('images');
    const row = page.getByRole('row').filter({ hasText: BUSYBOX });
    await row.getByText(/[KM]iB/).waitFor();
    await checkLooks(page, 'images');
    await page.getByRole('button', { name: 'Pull an image' }).click();
    const image = page.getByLabel('Image', { exact: true });
    assert.match((await image.getAttribute('placeholder')) ?? '', /^registry\.example\.com\//);
    await image.fill('127.0.0.1:1/none');
    await page.locator('dialog').getByRole('button', { name: 'Pull' }).click();
    await page.locator('dialog').getByRole('alert').waitFor();
    await checkLooks(page, 'a pull that failed');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await row.getByRole('link', { name: 'Start a sandbox from' }).click();
    assert.match(await image.inputValue(), /busybox/);
    assert.match((await image.getAttribute('placeholder')) ?? '', /busybox/, 'one that is on this server');
  });

  assert.deepEqual(complaints, []);
});
