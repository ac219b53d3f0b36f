import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { BUSYBOX } from '../engine/start-engine.ts';
import { checkAccessible } from './check-accessible.ts';
import { signIn, startDashboard } from './dashboard-fixture.ts';

const HOSTILE = `<img src=x onerror="window.broken=1">`;

test('a sandbox is made, used, watched, stopped and deleted in a browser', async (t) => {
  const dashboard = await startDashboard(t);
  const { page, server, complaints } = dashboard;
  await signIn(dashboard);
  const view = async (name: string) =>
    await page.getByRole('navigation', { name: 'Views of web' }).getByRole('link', { name }).click();
  const seen = async () =>
    String(await page.evaluate(`document.querySelector('.xterm-rows')?.innerText ?? ''`));
  const waitForScreen = async (text: string) => {
    await page.locator('.xterm-rows').filter({ hasText: text }).waitFor();
  };

  await t.test('the form says what it would send, and makes it', async () => {
    await page.getByRole('link', { name: 'New sandbox' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('web');
    await page.getByLabel('Image', { exact: true }).fill(BUSYBOX);
    await page
      .getByLabel('Command', { exact: true })
      .fill(`sh -c "while :; do echo '${HOSTILE.replaceAll('"', '')}' tick; sleep 1; done"`);
    await page.getByLabel('Labels', { exact: true }).fill('team=web');
    await page.getByText(/svc run --detach --name web --label team=web/).waitFor();
    await page.getByRole('button', { name: 'Make and start it' }).click();
    await page.getByRole('heading', { name: 'web', exact: true }).waitFor();
    await page.locator('.page-head [data-status=running]').waitFor();
    await checkAccessible(page, 'sandbox');
  });

  await t.test('what is typed into the terminal runs, and what it prints stays text', async () => {
    await view('Terminal');
    await waitForScreen('#');
    await page.keyboard.type(`echo $((6*7)) '${HOSTILE}'; printf '\\033]0;title\\007'\n`);
    await waitForScreen('42 <img');
    assert.match(await seen(), /42 <img src=x/);
    assert.equal(await page.evaluate('window.broken'), undefined);
    await page.keyboard.type(
      `mkdir -p /data; echo hello > "/data/${HOSTILE.replaceAll('"', '').replaceAll('/', '')}"; echo done\n`,
    );
    await waitForScreen('done');
  });

  await t.test('files are listed, uploaded, read, changed and downloaded; names stay text', async () => {
    await page.goto(`${page.url().replace(/\/terminal$/, '/files')}?path=/data`);
    await page.getByRole('button', { name: '<img src=x onerror=window.broken=1>', exact: true }).waitFor();
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'note.txt', mimeType: 'text/html', buffer: Buffer.from('<b>first</b>') });
    await page.getByRole('button', { name: 'note.txt', exact: true }).click();
    const editor = page.getByRole('textbox', { name: 'Content of /data/note.txt' });
    assert.equal(await editor.inputValue(), '<b>first</b>');
    await editor.fill('second');
    await page.getByRole('button', { name: 'Save' }).click();
    await editor.waitFor({ state: 'hidden' });
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download note.txt' }).click(),
    ]);
    assert.equal(download.suggestedFilename(), 'note.txt');
    assert.equal(await readFile(await download.path(), 'utf8'), 'second');
    assert.equal(await page.evaluate('window.broken'), undefined);
  });

  await t.test('its log and its charts move', async () => {
    await view('Logs');
    await page.locator('.log li').nth(3).waitFor();
    const before = await page.locator('.log li').count();
    await page.locator('.log li').nth(before).waitFor();
    assert.match(await page.locator('.log').innerText(), /<img src=x .*tick/);
    await view('Charts');
    await page
      .locator('figcaption')
      .filter({ hasText: /used [\d.]+ [KM]iB · limit 512 MiB/ })
      .waitFor();
    assert.equal(await page.locator('.chart canvas').count(), 4);
    await view('Events');
    await page.getByText('sandbox created').waitFor();
    await view('Processes');
    await page.getByText('None was started').waitFor();
  });

  await t.test(
    'it is found by its label, stopped and deleted where it is listed, without loading anything again',
    async () => {
      await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Sandboxes' }).click();
      await page.getByLabel('Filter by labels').fill('team=none');
      await page.getByText('Nothing fits').waitFor();
      await page.getByLabel('Filter by labels').fill('team=web');
      await page.getByRole('button', { name: 'Stop web' }).click();
      await page.locator('tr [data-status=stopped]').waitFor();
      await page.getByRole('button', { name: 'Delete web' }).click();
      await page.getByRole('button', { name: 'Delete it' }).click();
      await page.getByText('web is deleted').waitFor();
      await page.getByLabel('Filter by labels').fill('');
      await page.getByText('No sandboxes yet').waitFor();
      await checkAccessible(page, 'list');
    },
  );

  await t.test('what the server refuses is shown with its code and what to do', async () => {
    await page.goto(`${server.url}/orgs/acme/sandboxes/new`);
    await page.getByRole('textbox', { name: 'Name' }).fill('web');
    await page.getByLabel('Image', { exact: true }).fill(BUSYBOX);
    const volumes = page.getByLabel('Volumes', { exact: true });
    const make = page.getByRole('button', { name: 'Make and start it' });
    await volumes.fill('data:relative');
    await make.click();
    await page.locator('.field [role=alert]').waitFor();
    const told = `document.activeElement.getAttribute('aria-invalid') + ' ' +
      document.getElementById(document.activeElement.getAttribute('aria-describedby')).innerText`;
    assert.match(String(await page.evaluate(told)), /^true invalid_\w+ .*guest/, 'beside its input');
    assert.equal(await page.locator('.failure').count(), 0);
    await volumes.fill('none-such:/data');
    await make.click();
    await page.getByRole('alert').filter({ hasText: 'none-such' }).waitFor();
    await checkAccessible(page, 'form');
  });

  assert.deepEqual(complaints, []);
});
