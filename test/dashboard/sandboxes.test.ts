import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { TestSandbox } from '../engine/sandbox-fixture.ts';
import { BUSYBOX } from '../engine/start-engine.ts';
import { importPython } from '../engine/interpreter-images.ts';
import { checkLooks, SIZES } from './check-accessible.ts';
import { IN_A_BROWSER, signIn, startDashboard } from './dashboard-fixture.ts';

/** A picture of one pixel. */
const DOT =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
/** A private address without a host; sandboxes may not reach it. */
const PRIVATE = '192.168.77.77';
const HOSTILE = `<img src=x onerror="window.broken=1">`;

test('a sandbox is made, used, watched, stopped and deleted in a browser', IN_A_BROWSER, async (t) => {
  const dashboard = await startDashboard(t, { args: ['--recovery-time', '1'] });
  const { page, server, complaints } = dashboard;
  await importPython(server.engine);
  await signIn(dashboard);
  const view = async (name: string) =>
    await page.getByRole('navigation', { name: 'Views of web' }).getByRole('link', { name }).click();
  const seen = async () =>
    String(await page.evaluate(`document.querySelector('.xterm-rows')?.innerText ?? ''`));
  const waitForScreen = async (text: string) => {
    await page.locator('.xterm-rows').filter({ hasText: text }).waitFor();
  };

  /** Large enough that the test sees the upload in progress. */
  const largeFile = async () => {
    const folder = await mkdtemp(join(tmpdir(), 'svc-upload-'));
    t.after(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, 'large'), '');
    await truncate(join(folder, 'large'), 1024 * 1024 * 1024);
    return join(folder, 'large');
  };
  const inside = async (script: string) => {
    const [found] = await server.engine.client.listSandboxes();
    assert.ok(found);
    return (await new TestSandbox(server.engine, found).sh(script)).stdout;
  };

  await t.test('the form shows its request, and sends it', async () => {
    await page.getByRole('link', { name: 'New sandbox' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('web');
    await page.getByLabel('Image', { exact: true }).fill('python');
    await page
      .getByLabel('Command', { exact: true })
      .fill(`sh -c "while :; do echo '${HOSTILE.replaceAll('"', '')}' tick; sleep 1; done"`);
    await page.getByLabel('Labels', { exact: true }).fill('team=web');
    await page.getByText(/svc run --detach --name web --label team=web/).waitFor();
    await page.getByRole('button', { name: 'Create and start' }).click();
    await page.getByRole('heading', { name: 'web', exact: true }).waitFor();
    await page.locator('.page-head [data-status=running]').waitFor();
    await checkLooks(page, 'summary');
  });

  await t.test('a typed command runs, and its output stays text', async () => {
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
    await checkLooks(page, 'terminal');
    await page.locator('.xterm-helper-textarea').press('Tab');
    const focused = `document.activeElement.className + document.activeElement.innerText`;
    assert.match(String(await page.evaluate(focused)), /xterm/, 'for the shell');
    await page.keyboard.press('Control+Shift+Enter');
    assert.match(String(await page.evaluate(focused)), /New shell/);
  });

  await t.test('files are listed, uploaded, read, changed and downloaded; names stay text', async () => {
    await page.goto(`${page.url().replace(/\/terminal$/, '/files')}?path=/data`);
    await page.getByRole('button', { name: '<img src=x onerror=window.broken=1>', exact: true }).waitFor();
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'note.txt', mimeType: 'text/html', buffer: Buffer.from('<b>first</b>') });
    await page.getByRole('button', { name: 'note.txt', exact: true }).press('Enter');
    const editor = page.getByRole('textbox', { name: 'Content of /data/note.txt' });
    assert.equal(await editor.innerText(), '<b>first</b>');
    await checkLooks(page, 'editor');
    await editor.press('Control+A');
    await page.keyboard.type('second');
    await page.getByRole('button', { name: 'Save' }).press('Enter');
    await editor.waitFor({ state: 'hidden' });
    assert.equal(await page.evaluate('document.activeElement.innerText'), 'note.txt');
    await checkLooks(page, 'files');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download note.txt' }).click(),
    ]);
    assert.equal(download.suggestedFilename(), 'note.txt');
    assert.equal(await readFile(await download.path(), 'utf8'), 'second');
    assert.equal(await page.evaluate('window.broken'), undefined);
  });

  await t.test('an upload that breaks off is reported, and can be repeated', async () => {
    const file = { name: 'large', mimeType: '', buffer: Buffer.alloc(8 * 1024 * 1024) };
    await page.locator('input[type=file]').setInputFiles(await largeFile());
    await page.getByText(/[\d.]+ MiB of 1 GiB/).waitFor();
    const web = await server.webPid();
    // SAFETY: 0 would be everything that runs this test.
    assert.ok(web > 1);
    process.kill(web, 'SIGKILL');
    await page.getByText('large was not uploaded').waitFor();
    const isBack = async () =>
      await fetch(`${server.url}/api/v1/health`).then(
        ({ ok }) => ok,
        () => false,
      );
    await waitUntil(isBack, { what: 'another one answers' });
    await page.locator('input[type=file]').setInputFiles(file);
    await page.getByText('large is uploaded').waitFor();
    await page.getByRole('cell', { name: '8 MiB' }).waitFor();
    assert.equal(await page.getByText('.svc-partial').count(), 0, 'nothing half written is left');
    await page.locator('.toast.bad').getByRole('button', { name: 'Close' }).click();
  });

  await t.test('a page that is closed during an upload leaves nothing there', async () => {
    const files = page.url();
    await page.locator('input[type=file]').setInputFiles(await largeFile());
    await page.getByText(/[\d.]+ MiB of 1 GiB/).waitFor();
    assert.match(await inside('ls -A /data'), /^\.svc-partial-/m);
    await page.goto('about:blank');
    await waitUntil(async () => !/partial/.test(await inside('ls -A /data')), { what: 'it is removed' });
    await page.goto(files);
  });

  await t.test(
    'a download goes to the disk as it comes, can be cancelled, and an interruption is reported',
    async () => {
      await inside('head -c 10000000 /dev/urandom > /data/much; truncate -s 4000000000 /data/more');
      await page.reload();
      const kept = `(async () => {
      const root = await navigator.storage.getDirectory();
      const folder = await root.getDirectoryHandle('downloads');
      // What is being written Chromium keeps in a second one of that name.
      return (await Array.fromAsync(folder.keys())).filter((name) => !name.endsWith('.crswap')).length;
    })()`;
      const before = Number(await page.evaluate(kept));
      await page.getByRole('button', { name: 'Download more' }).click();
      await page.getByText(/[\d.]+ MiB of 3\.7 GiB/).waitFor();
      assert.equal(await page.evaluate(kept), before + 1, 'it lies on the disk of the browser');
      await page.getByRole('button', { name: 'Cancel the download of more' }).click();
      await page.getByRole('button', { name: 'Download more' }).waitFor();
      assert.equal(await page.evaluate(kept), before, 'nothing is left of it');
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: 'Download much' }).click(),
      ]);
      const hash = createHash('sha256').update(await readFile(await download.path()));
      assert.equal((await inside('sha256sum /data/much')).split(' ')[0], hash.digest('hex'));
      await inside('rm /data/more');
      await page.getByRole('button', { name: 'Download more' }).click();
      await page.getByText('more could not be downloaded').waitFor();
      await page.locator('.toast.bad').getByRole('button', { name: 'Close' }).click();
      await inside('rm /data/much');
    },
  );

  await t.test('code runs, and its results arrive: PNG drawn, SVG as a download, HTML as text', async () => {
    await view('Code');
    const run = async (code: string) => {
      const editor = page.getByRole('textbox', { name: 'Code', exact: true });
      await editor.press('Control+A');
      await editor.press('Delete');
      await page.keyboard.insertText(code);
      await editor.press('Control+Enter');
    };
    await run(
      [
        'answer = 6 * 7',
        `display({'image/png': '${DOT}'}, raw=True)`,
        `display({'image/svg+xml': '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>top.broken=1</script></svg>'}, raw=True)`,
        `display({'text/html': '${HOSTILE}'}, raw=True)`,
        `display({'application/vnd.svc.table+json': {'columns': [{'name': 'n', 'type': 'int'}], 'rows': [[7]], 'row_count': 1, 'truncated': False}}, raw=True)`,
      ].join('\n'),
    );
    await page.getByText('Finished.').waitFor();
    await page.locator('.result img').waitFor();
    const widths = `[...document.querySelectorAll('.result img')].map((image) => image.naturalWidth)`;
    assert.deepEqual(await page.evaluate(widths), [1]);
    await page.getByRole('button', { name: 'Save the SVG' }).waitFor();
    await page.locator('.result pre').filter({ hasText: HOSTILE }).waitFor();
    await page.locator('.result').getByRole('cell', { name: '7', exact: true }).waitFor();
    await run('print("still", answer)');
    await page.locator('.code-output').getByText('still 42').waitFor();
    await checkLooks(page, 'code');
    await run('import time\nprint("begun", flush=True)\ntime.sleep(600)');
    await page.locator('.code-output').getByText('begun').waitFor();
    await page.getByRole('button', { name: 'Interrupt' }).click();
    await page.getByText('Interrupted.').waitFor();
    await run(
      `import socket\ntry: socket.create_connection(('${PRIVATE}', 80), 1)\nexcept OSError as error: print("refused", error)`,
    );
    await page.locator('.code-output').getByText('refused').waitFor();
    assert.equal(await page.evaluate('window.broken'), undefined);
  });

  await t.test('denied connections are shown with the reason', async () => {
    await view('Network');
    const row = page.getByRole('row').filter({ hasText: `${PRIVATE}:80` });
    await row.getByText('denied', { exact: true }).first().waitFor();
    const edges = `['section[aria-label="Network decisions"]', 'section[aria-label="Network decisions"] .actions']
      .map((found) => document.querySelector(found).getBoundingClientRect().right)`;
    await page.setViewportSize(SIZES.wide);
    const [panel = 0, choice = 0] = (await page.evaluate(edges)) as readonly number[];
    assert.ok(panel - choice < 40, 'the choice is at the right edge');
    await page.getByLabel('Only denied').click();
    await row.getByText('denied', { exact: true }).first().waitFor();
    await page.getByLabel('Name or address').fill(PRIVATE);
    await page.getByRole('button', { name: 'Explain' }).click();
    await page.getByRole('status').filter({ hasText: 'denied' }).waitFor();
    await checkLooks(page, 'network');
  });

  await t.test('log and charts of a sandbox are updated live', async () => {
    await view('Logs');
    await page.locator('.log li').nth(3).waitFor();
    const before = await page.locator('.log li').count();
    await page.locator('.log li').nth(before).waitFor();
    assert.match(await page.locator('.log').innerText(), /<img src=x .*tick/);
    await checkLooks(page, 'logs');
    await view('Charts');
    await page
      .locator('figcaption')
      .filter({ hasText: /used [\d.]+ [KM]iB\s*limit 512 MiB/ })
      .waitFor();
    assert.equal(await page.locator('.chart canvas').count(), 4);
    await checkLooks(page, 'charts');
    await view('Processes');
    await page.getByText('No processes yet').waitFor();
    await checkLooks(page, 'processes');
  });

  await t.test('events of a sandbox are about it alone, filtered by type and day', async () => {
    await view('Events');
    await page.getByText('exec_started').first().waitFor();
    assert.equal(await page.getByText('api_key_created').count(), 0, 'of the organization, and another');
    await page.getByLabel('Type').fill('sandbox_created');
    await page.getByText('exec_started').first().waitFor({ state: 'detached' });
    assert.equal(await page.getByRole('row').count(), 2, 'the head and one event');
    assert.match(page.url(), /events\?type=sandbox_created$/);
    await checkLooks(page, 'events');
    await page.getByLabel('To').fill('2020-01-01');
    await page.getByText('No matching events').waitFor();
  });

  await t.test(
    'an unreachable host is shown; after a decision of the user the sandbox runs again',
    async () => {
      await view('Summary');
      await server.engine.stop();
      await page.getByRole('heading', { name: 'Choose how to recover' }).waitFor();
      await checkLooks(page, 'recovery');
      await page.getByRole('button', { name: 'Start it again' }).click();
      await server.engine.launch();
      await page.locator('.page-head [data-status=running]').waitFor();
    },
  );

  await t.test(
    'a sandbox is found by its label, stopped and deleted in the list, without a reload',
    async () => {
      await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Sandboxes' }).click();
      await page.getByLabel('Filter by labels').fill('team=none');
      await page.getByText('No matches').waitFor();
      await page.getByLabel('Filter by labels').fill('team=web');
      await page.getByRole('button', { name: 'Stop web' }).click();
      await page.locator('tr [data-status=stopped]').waitFor();
      await page.getByRole('button', { name: 'Delete web' }).click();
      await page.getByRole('button', { name: 'Delete it' }).click();
      await page.getByText('web is deleted').waitFor();
      await page.getByLabel('Filter by labels').fill('');
      await page.getByText('No sandboxes yet').waitFor();
      await checkLooks(page, 'list');
    },
  );

  await t.test('usage of a sandbox is charted, and saved for a spreadsheet', async () => {
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Usage' }).click();
    await page.getByRole('cell', { name: 'web' }).first().waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'CSV' }).click(),
    ]);
    const [head, ...rows] = (await readFile(await download.path(), 'utf8')).split('\r\n');
    assert.equal(head, 'kind,id,name,vcpu_hours,memory_gib_hours,disk_gib_hours');
    const [, hours] = /^"sandbox","[^"]+","web",([\d.e-]+),/.exec(rows.join('\n')) ?? [];
    assert.ok(Number(hours) > 0, rows.join('\n'));
  });

  await t.test('an error of the server is shown with its code and the remedy', async () => {
    await page.goto(`${server.url}/orgs/acme/sandboxes/new`);
    await page.getByRole('textbox', { name: 'Name' }).fill('web');
    await page.getByLabel('Image', { exact: true }).fill(BUSYBOX);
    const volumes = page.getByLabel('Volumes', { exact: true });
    const make = page.getByRole('button', { name: 'Create and start' });
    await volumes.fill('data:relative');
    await make.click();
    await page.locator('.field [role=alert]').waitFor();
    const validity = `document.activeElement.getAttribute('aria-invalid') + ' ' +
      document.getElementById(document.activeElement.getAttribute('aria-describedby')).innerText`;
    assert.match(String(await page.evaluate(validity)), /^true invalid_\w+ .*guest/, 'beside its input');
    assert.equal(await page.locator('.failure').count(), 0);
    await volumes.fill('none-such:/data');
    await make.click();
    await page.getByRole('alert').filter({ hasText: 'none-such' }).waitFor();
    await checkLooks(page, 'form');
  });

  assert.deepEqual(complaints, []);

  await t.test('in development mode it opens without signing in, with a notice', async () => {
    await page.context().clearCookies();
    await server.stop();
    const dev = server.with('--dev');
    await dev.launch();
    t.after(() => dev.stop().then(() => undefined));
    await page.goto(`${dev.url}/`);
    await page.getByText('Development mode.').waitFor();
    await page.getByRole('link', { name: 'New sandbox' }).waitFor();
    await page.goto(`${dev.url}/account`);
    await page.getByRole('heading', { name: 'SSH keys' }).waitFor();
    assert.equal(await page.getByRole('heading', { name: 'Password' }).count(), 0);
  });
});
