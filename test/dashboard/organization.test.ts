import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { signatureOf, startReceiver } from '../../packages/server/src/testing/webhook-receiver.ts';
import { CLIENT, TestProvider } from '../../packages/server/src/testing/identity-provider.ts';
import { makeEd25519Pair } from '../../packages/server/src/transports/ssh/ed25519-pair.ts';
import { checkLooks, checkWidth, SIZES } from './check-accessible.ts';
import { IN_A_BROWSER, OWNER, signIn, startDashboard } from './dashboard-fixture.ts';

const HOSTILE = '<img src=x onerror=alert(1)>.txt';

const PAGES = [
  ['orgs/acme', 'Acme'],
  ['orgs/acme/sandboxes', 'Sandboxes'],
  ['orgs/acme/sandboxes/new', 'New sandbox'],
  ['orgs/acme/images', 'Images'],
  ['orgs/acme/snapshots', 'Snapshots'],
  ['orgs/acme/volumes', 'Volumes'],
  ['orgs/acme/secrets', 'Secrets'],
  ['orgs/acme/usage', 'Usage'],
  ['orgs/acme/audit', 'Audit log'],
  ['orgs/acme/keys', 'API keys'],
  ['orgs/acme/members', 'Members'],
  ['orgs/acme/webhooks', 'Webhooks'],
  ['orgs/acme/settings', 'Settings'],
  ['orgs/acme/nothing', 'Not found'],
  ['account', 'Your account'],
] as const;

/**
 * Leaves the first operation of each section, and one of each method, on the page of the reference: axe takes half a minute for its
 * 45,000 elements, which come from one template.
 */
const KEEP_SAMPLES = `(() => {
  const methods = new Set();
  for (const each of document.querySelectorAll('section > details')) {
    if (!each.matches(':first-of-type') && methods.has(each.className)) each.remove();
    methods.add(each.className);
  }
})()`;

test('an owner runs an organization from its pages', IN_A_BROWSER, async (t) => {
  const provider = await TestProvider.start();
  t.after(() => provider.close());
  const dashboard = await startDashboard(t, {
    args: ['--allow-private-targets'],
    others: [provider.issuer],
  });
  const { page, server, complaints } = dashboard;
  const go = (path: string) => page.goto(`${server.url}/orgs/acme/${path}`);
  await signIn(dashboard);

  await t.test('a key is shown once, works, and is revoked', async () => {
    await go('keys');
    // With the keyboard alone: it stays in the dialog, and can be seen.
    // Between the last and the first of its elements a browser shows its own, and none of the page has the keyboard.
    const focus = `(() => {
      const { activeElement: element, body } = document;
      if (element === body) return 'browser';
      return (element.closest('dialog') === null ? 'page ' : 'dialog ') + getComputedStyle(element).outlineStyle;
    })()`;
    await page.getByRole('button', { name: 'New key' }).first().press('Enter');
    await page.getByRole('dialog').waitFor();
    for (let presses = 0; presses < 6; presses += 1) {
      assert.match(
        String(await page.evaluate(focus)),
        /^(browser|dialog (?!none))/,
        `after ${presses} of Tab`,
      );
      await page.keyboard.press('Tab');
    }
    const closed = async (keys: string, name?: string) => {
      if (name === undefined) await page.keyboard.press(keys);
      else await page.locator('dialog').getByRole('button', { name }).press(keys);
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      return await page.evaluate(
        `(({ id, ariaLabel, innerText }) => id || ariaLabel || innerText)(document.activeElement)`,
      );
    };
    assert.equal(await closed('Escape'), 'New key');
    // In the list that is empty: the button is gone when the key is there.
    await page.getByRole('button', { name: 'New key' }).nth(1).press('Enter');
    await page.getByLabel('Name').fill('ci');
    await page.getByLabel('Name').press('Enter');
    const key = await page.locator('dialog pre').first().innerText();
    assert.match(key, /^svc_/);
    const ask = () => fetch(`${server.url}/v1/sandboxes`, { headers: { authorization: `Bearer ${key}` } });
    assert.equal((await ask()).status, 200);
    await page.getByRole('cell', { name: 'ci', exact: true }).waitFor();
    assert.equal(await closed('Enter', 'I have it'), 'content');
    assert.ok(!(await page.content()).includes(key), 'it is nowhere in the page any more');
    await page.getByRole('button', { name: 'Revoke ci' }).press('Enter');
    assert.equal(await closed('Enter', 'Keep it'), 'Revoke ci');
    await page.getByRole('button', { name: 'Revoke ci' }).press('Enter');
    assert.equal(await closed('Enter', 'Revoke it'), 'content', 'its row is gone');
    await page.getByText('No keys yet').waitFor();
    assert.equal((await ask()).status, 401);
  });

  await t.test('a user is invited by a link; what the role forbids is not offered', async () => {
    await go('members');
    await page.getByRole('button', { name: 'Invite a person' }).click();
    await page.getByLabel('E-mail address').fill('nowhere');
    await page.getByRole('button', { name: 'Create the link' }).click();
    await page.locator('dialog .field [role=alert]').filter({ hasText: 'email' }).waitFor();
    await page.getByLabel('E-mail address').fill('bob@example.com');
    await page.getByRole('button', { name: 'Create the link' }).click();
    const link = await page.locator('dialog pre').innerText();
    await page
      .locator('dialog')
      .getByRole('heading', { name: 'Send this link to bob@example.com' })
      .waitFor();
    assert.equal(await page.getByText('only you').count(), 0, 'a link to pass on is no secret to keep');
    await checkLooks(page, 'an invite');
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.getByRole('button', { name: 'Done' }).click();
    // Shown at once, and taken back: an organization keeps an owner.
    const role = page.getByLabel(`Role of ${OWNER}`);
    await role.selectOption('member');
    await page.getByText(`${OWNER} stays owner`).waitFor();
    assert.equal(await role.inputValue(), 'owner');
    await page.getByRole('region', { name: 'Open invites' }).getByText('bob@example.com').waitFor();
    await page.context().clearCookies();
    await page.goto('about:blank');
    await page.goto(link);
    await page.getByLabel('Password').fill('a long enough password');
    await page.getByRole('button', { name: 'Create the account' }).click();
    await page.getByRole('button', { name: 'Join Acme' }).click();
    await page.getByRole('heading', { name: 'Acme' }).waitFor();
    const main = page.getByRole('navigation', { name: 'Main' });
    await main.getByRole('link', { name: 'Members' }).click();
    await page.getByRole('cell', { name: 'bob@example.com' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Invite a person' }).count(), 0);
    assert.equal(await main.getByRole('link', { name: 'Audit log' }).count(), 0);
    await page.context().clearCookies();
    await page.goto('about:blank');
    await signIn(dashboard);
  });

  await t.test('a volume takes files and gives them back', async () => {
    await go('volumes');
    await page.getByRole('button', { name: 'New volume' }).first().click();
    await page.getByLabel('Name').fill('data');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('link', { name: 'data', exact: true }).click();
    await page
      .getByLabel('Files to upload')
      .setInputFiles({ name: HOSTILE, mimeType: 'text/plain', buffer: Buffer.from('hello') });
    await page.getByRole('cell', { name: HOSTILE }).first().waitFor();
    assert.equal(await page.locator('img').count(), 0, 'a name is text');
    const coming = page.waitForEvent('download');
    await page.getByRole('button', { name: `Download ${HOSTILE}` }).click();
    const download = await coming;
    assert.equal(await readFile(await download.path(), 'utf8'), 'hello');
    await checkLooks(page, 'a volume');
    // Large and slow, so that the upload can be cancelled.
    const large = join(await mkdtemp(join(tmpdir(), 'svc-upload-')), 'large');
    t.after(() => rm(dirname(large), { recursive: true }));
    await writeFile(large, '');
    await truncate(large, 64 * 1024 * 1024);
    const upload = page.getByLabel('Files to upload');
    const network = await page.context().newCDPSession(page);
    const slowDown = (uploadThroughput: number) =>
      network.send('Network.emulateNetworkConditions', {
        offline: false,
        latency: 0,
        downloadThroughput: -1,
        uploadThroughput,
      });
    await slowDown(1024 * 1024);
    await upload.setInputFiles(large);
    await page.getByText(/[\d.]+ (KiB|MiB) of 64 MiB/).waitFor();
    await page.getByRole('button', { name: 'Cancel' }).press('Enter');
    await page.getByText('large was cancelled; nothing of it was kept').waitFor();
    await page.getByRole('button', { name: 'Upload' }).waitFor();
    await slowDown(-1);
    assert.equal(await page.getByRole('row').count(), 2, 'the head and the file from before');
    await upload.setInputFiles(large);
    await page.getByText('large is uploaded').waitFor();
    await page.getByRole('cell', { name: '64 MiB' }).waitFor();
    await page.getByRole('button', { name: 'New folder' }).click();
    await page.getByLabel('Name').fill('deep');
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await page.getByRole('link', { name: 'deep' }).click();
    await page.getByText('This folder is empty').waitFor();
  });

  await t.test('a secret and a registry are set and never shown', async () => {
    await go('secrets');
    await page.getByRole('button', { name: 'Set a secret' }).first().click();
    await page.getByLabel('Name').fill('API_KEY');
    await page.getByLabel('Value').fill('the value itself');
    await page.getByLabel('Hosts').fill('api.example.com, *.example.org');
    await page.getByRole('button', { name: 'Set it' }).click();
    await page.getByRole('cell', { name: 'api.example.com, *.example.org' }).waitFor();
    await page.getByRole('button', { name: 'Set a password' }).click();
    await page.getByLabel('Host').fill('ghcr.io');
    await page.getByLabel('User').fill('ann');
    await page.getByLabel('Password or token').fill('the value itself');
    await page.getByRole('button', { name: 'Set it' }).click();
    await page.getByRole('cell', { name: 'ghcr.io', exact: true }).waitFor();
    assert.ok(!(await page.content()).includes('the value itself'));
  });

  await t.test('a webhook is made, tested, followed, rested and given another secret', async () => {
    let status = 204;
    const receiver = await startReceiver(t, (_hook, response) => response.writeHead(status).end(HOSTILE));
    await go('webhooks');
    await page.getByText('No webhooks yet').waitFor();
    await page.getByRole('button', { name: 'New webhook' }).first().click();
    const make = page.getByRole('button', { name: 'Create', exact: true });
    await page.getByLabel('Address').fill('ftp://example.com');
    await make.click();
    await page.locator('dialog .field [role=alert]').filter({ hasText: 'url' }).waitFor();
    await page.getByLabel('Address').fill(receiver.url);
    await page.getByLabel('sandbox.*', { exact: true }).click();
    await make.click();
    await page.locator('dialog .check [role=alert]').filter({ hasText: 'event_types' }).waitFor();
    await page.getByRole('button', { name: '0 of 8 types of volume' }).press('Enter');
    await page.getByLabel('volume_created', { exact: true }).press('Space');
    await checkLooks(page, 'a new webhook');
    await make.click();
    const secret = await page.locator('dialog pre').innerText();
    assert.match(secret, /^whsec_/);
    await page.getByRole('button', { name: 'I have it' }).click();
    await page.getByText('No deliveries yet').waitFor();
    assert.ok(!(await page.content()).includes(secret), 'it is nowhere in the page any more');

    const test = page.getByRole('button', { name: 'Send a test' });
    await test.click();
    await page.getByText('The test: taken with 204').waitFor();
    const [hook] = receiver.received;
    assert.ok(hook && hook.headers['webhook-signature'] === signatureOf(secret, hook));
    status = 500;
    await test.click();
    const shown = page.locator('.failure[role=status]');
    await shown.filter({ hasText: HOSTILE }).waitFor();
    assert.match(await shown.innerText(), /500[^]*from 200 to 299/);
    assert.equal(await page.locator('img').count(), 0, 'what a receiver answers is text');

    // An event of its own: it fails, which shows without a reload, and is taken when it is sent again.
    await page.evaluate(`fetch('/v1/orgs/acme/volumes', { method: 'POST', body: '{"name":"told"}',
      headers: { 'x-svc-page': '1', 'content-type': 'application/json' } })`);
    const row = page.getByRole('row').filter({ hasText: 'volume_created' });
    await row.getByText('retrying').waitFor();
    await page.locator('.page-head').getByText('failing').waitFor();
    await row.getByText('volume_created').click();
    await row
      .getByText(/500.* after [\d,]+ ms/)
      .first()
      .waitFor();
    await checkLooks(page, 'a webhook');
    status = 204;
    await page.getByRole('button', { name: 'Send volume_created again' }).click();
    await row.getByText('taken, 204').waitFor();
    await page.locator('.page-head').getByText('enabled').waitFor();

    await page.getByRole('button', { name: 'New secret' }).click();
    await page.getByLabel('Keep signing with the old secret for').selectOption('0');
    await make.click();
    const other = await page.locator('dialog pre').innerText();
    assert.ok(other.startsWith('whsec_') && other !== secret);
    await page.getByRole('button', { name: 'I have it' }).click();
    await page.getByRole('button', { name: 'Change' }).click();
    await page.getByLabel('Description').fill('of the volumes');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('of the volumes').waitFor();
    await page.getByRole('button', { name: 'Disable' }).click();
    await page.getByRole('button', { name: 'Enable' }).waitFor();
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Webhooks' }).click();
    await page.getByRole('row').filter({ hasText: 'disabled' }).getByText('volume_created').waitFor();
    await page.getByRole('button', { name: `Delete ${receiver.url}` }).click();
    await page.getByRole('button', { name: 'Delete it' }).click();
    await page.getByText('No webhooks yet').waitFor();
    const last = receiver.received.at(-1);
    assert.ok(last && last.headers['webhook-signature'] === signatureOf(secret, last));
  });

  await t.test(
    'a personal token works until it is revoked; a key for SSH is checked, added and removed',
    async () => {
      await page.goto(`${server.url}/account`);
      const dialog = page.getByRole('dialog');
      await page.getByRole('button', { name: 'New token' }).click();
      await dialog.getByLabel('Name').fill('laptop');
      await dialog.getByLabel('Name').press('Enter');
      const token = await dialog.locator('pre').first().innerText();
      assert.match(token, /^svc_pat_/);
      const ask = () =>
        fetch(`${server.url}/v1/orgs/acme/sandboxes`, { headers: { authorization: `Bearer ${token}` } });
      assert.equal((await ask()).status, 200);
      await page.getByRole('button', { name: 'I have it' }).click();
      await page.getByRole('button', { name: 'Revoke laptop' }).click();
      await page.getByRole('button', { name: 'Revoke it' }).click();
      await page.getByRole('cell', { name: 'laptop', exact: true }).waitFor({ state: 'detached' });
      assert.equal((await ask()).status, 401);

      await page.getByRole('button', { name: 'Add a key' }).click();
      await dialog.getByLabel('Name').fill('desk');
      await dialog.getByLabel('Public key').fill('ssh-ed25519 nonsense');
      await page.getByRole('button', { name: 'Add it' }).click();
      const field = dialog.locator('.field').filter({ hasText: 'Public key' });
      await field.getByRole('alert').waitFor();
      await dialog.getByLabel('Public key').fill(makeEd25519Pair().publicKey);
      await page.getByRole('button', { name: 'Add it' }).click();
      await page.getByText('SHA256:').waitFor();
      await page.getByRole('button', { name: 'Remove desk' }).click();
      await page.getByRole('button', { name: 'Remove it' }).click();
      await page.getByText('SHA256:').waitFor({ state: 'detached' });
    },
  );

  await t.test('the audit log tells all of that, and is filtered by its address', async () => {
    await go('audit?type=api_key_revoked');
    await page.getByText('api_key_revoked', { exact: true }).click();
    await page.locator('.payload').first().waitFor();
    assert.equal(await page.getByRole('row').count(), 2, 'the head and one event');
  });

  await t.test('usage of a window, with a file for a spreadsheet', async () => {
    await go('usage?from=2026-01-01&to=2026-01-31');
    await page.getByText('No usage').waitFor();
    assert.equal(await page.locator('.bar-chart .bar').count(), 31);
    await go('usage?from=2026-02-01&to=2026-01-31');
    await page.getByText('The end is before the start').waitFor();
  });

  await t.test(
    'every page is accessible: axe finds no serious problem, in dark mode and on a phone too',
    async () => {
      for (const [address, heading] of PAGES) {
        // As a link does it: nothing is loaded again.
        await page.evaluate(
          `history.pushState(null, '', '/${address}'), dispatchEvent(new Event('popstate'))`,
        );
        await page.locator('h1').filter({ hasText: heading }).waitFor();
        await page.locator('main .loading').first().waitFor({ state: 'detached' });
        await checkLooks(page, address);
      }
      await page.goto(`${server.url}/docs`);
      await page.locator('h1').waitFor();
      for (const [name, size] of Object.entries(SIZES)) {
        await page.setViewportSize(size);
        await checkWidth(page, `docs, ${name}`);
      }
      await page.evaluate(KEEP_SAMPLES);
      await checkLooks(page, 'docs');
    },
  );

  await t.test('a member signs in at the provider of the organization, for it alone', async () => {
    await go('settings');
    await page.locator('.facts').getByText('Longest run of one sandbox', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Set it up' }).click();
    await page.getByLabel('Issuer').fill(provider.issuer);
    await page.getByLabel('Client ID').fill(CLIENT.client_id);
    await page.getByLabel('Client secret').fill(CLIENT.client_secret);
    await page.getByRole('button', { name: 'Check and save' }).click();
    await page.getByText(CLIENT.client_id).waitFor();
    provider.claims = { sub: 'ann', email: OWNER, email_verified: true };
    await page.context().clearCookies();
    await page.goto(`${server.url}/sign-in/provider`);
    provider.fault = 'away';
    const begin = async () => {
      await page.getByLabel('Organization').fill('acme');
      await page.getByRole('button', { name: 'Continue' }).click();
    };
    await begin();
    await page.getByRole('heading', { name: 'You are not signed in' }).waitFor();
    assert.match(await page.getByRole('alert').innerText(), /^unavailable /);
    provider.fault = 'none';
    await page.getByRole('button', { name: 'Begin again' }).click();
    await begin();
    await page.getByRole('heading', { name: 'Acme' }).waitFor();
    assert.equal(await page.evaluate('sessionStorage.length'), 0);
    await page.goto(`${server.url}/account`);
    await page.getByText('limited to the organization').waitFor();
  });

  assert.deepEqual(complaints, []);
});
