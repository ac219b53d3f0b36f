import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOfStep } from '../../packages/server/src/access/one-time-code.ts';
import { checkLooks } from './check-accessible.ts';
import { readQrCode } from './read-qr-code.ts';
import {
  IN_A_BROWSER,
  makeOrganization,
  ownerAddress,
  signIn,
  signInAddress,
  startDashboard,
} from './dashboard-fixture.ts';

const STEP_MS = 30_000;
const PASSWORD = 'a long enough password';

test('people sign in, stay where they wanted to be, and leave nothing behind', IN_A_BROWSER, async (t) => {
  const dashboard = await startDashboard(t, { isNew: true });
  const { page, server, complaints } = dashboard;
  const signInAs = async (email: string) => {
    await page.goto(`${server.url}/sign-in`);
    await page.getByLabel('E-mail address').fill(email);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
  };

  await t.test(
    'the first person makes the owner’s account with the link of the first start, once',
    async () => {
      const address = await ownerAddress(dashboard);
      await page.goto(address);
      await page.getByRole('heading', { name: 'Welcome to svc' }).waitFor();
      await page.getByLabel('E-mail address').fill('first@example.com');
      await page.getByLabel('Password').fill(PASSWORD);
      assert.equal(page.url(), `${server.url}/sign-up`, 'the secret is not in the address any more');
      await page.getByRole('button', { name: 'Create the account' }).click();
      await page.waitForURL(`${server.url}/orgs/default`);
      await page.getByRole('link', { name: 'Settings' }).waitFor();
      await page.context().clearCookies();
      await page.goto('about:blank');
      await page.goto(address);
      await page.getByLabel('E-mail address').fill('second@example.com');
      await page.getByLabel('Password').fill(PASSWORD);
      await page.getByRole('button', { name: 'Create the account' }).click();
      await page.getByText('was used, has expired').waitFor();
      await makeOrganization(server);
    },
  );

  await t.test('a link signs in once, and a password can be chosen with it', async () => {
    const address = await signInAddress(dashboard);
    await page.goto(address);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByLabel('Password').fill(PASSWORD);
    assert.equal(page.url(), `${server.url}/sign-in`, 'the secret is not in the address any more');
    await page.getByRole('button', { name: 'Set the password' }).click();
    await page.getByRole('heading', { name: 'Acme' }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page.goto('about:blank');
    await page.goto(address);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('was used before or has expired').waitFor();
    assert.match(await page.getByRole('alert').innerText(), /sign_in_failed/);
  });

  await t.test(
    'open redirect: a request for a page without a session leads to the sign-in page and nowhere else',
    async () => {
      const evil = 'https://evil.example/';
      for (const path of ['//evil.example/orgs', '/%2f%2fevil.example', `/sign-in?next=${evil}`]) {
        const { headers } = await fetch(`${server.url}${path}`, { redirect: 'manual' });
        assert.equal(headers.get('location'), null, path);
      }
      await page.goto(`${server.url}/orgs/acme/sandboxes?next=${evil}&return_to=//evil.example`);
      await page.getByLabel('E-mail address').fill('ann@example.com');
      await page.getByLabel('Password').fill('not this one');
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('The e-mail address or the password is wrong').waitFor();
      await page.getByLabel('Password').fill(PASSWORD);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'Sandboxes', exact: true }).waitFor();
      assert.equal(new URL(page.url()).origin, server.url);
    },
  );

  await t.test('a session that ends elsewhere asks for the next one here', async () => {
    await page.context().clearCookies();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await signIn(dashboard);
  });

  await t.test('a second factor is set up and asked for; a recovery code replaces it, once', async () => {
    await page.goto(`${server.url}/account`);
    await page.getByRole('cell', { name: 'Chrome on Linux this one' }).waitFor();
    await page.getByRole('button', { name: 'Turn it on' }).click();
    await page.getByRole('button', { name: 'Show the QR code' }).click();
    const secret = await page.locator('dialog pre').first().innerText();
    await checkLooks(page, 'second factor');
    const scanned = new URL((await readQrCode(page, page.getByRole('img', { name: 'QR code' }))) ?? '');
    assert.equal(scanned.protocol, 'otpauth:');
    assert.equal(scanned.searchParams.get('secret'), secret);
    assert.match(decodeURIComponent(scanned.pathname), /ann@example\.com/);
    const confirm = async (code: string) => {
      await page.getByLabel('Code from the app').fill(code);
      await page.locator('dialog').getByRole('button', { name: 'Turn it on' }).click();
    };
    const step = () => Math.floor(Date.now() / STEP_MS);
    // Of long ago: said where it was typed, and the next one is taken.
    await confirm(codeOfStep(secret, step() - 9));
    await page.locator('dialog .field [role=alert]').filter({ hasText: 'wait for the next one' }).waitFor();
    // However long that took; it is taken until the end of the next step.
    const used = step();
    await confirm(codeOfStep(secret, used));
    await page.getByText('Recovery codes', { exact: true }).waitFor();
    const [recovery = ''] = (await page.locator('dialog pre').innerText()).split('\n');
    await page.getByRole('button', { name: 'I have it' }).click();
    await page.getByText('It is on.').waitFor();
    const signInWith = async (code: string) => {
      await page.context().clearCookies();
      await signInAs('ann@example.com');
      await page.getByLabel('Code').fill(code);
      await page.getByRole('button', { name: 'Sign in' }).click();
    };
    await signInWith(codeOfStep(secret, Math.max(used + 1, step())));
    await page.getByRole('heading', { name: 'Acme' }).waitFor();
    await signInWith(recovery);
    await page.getByRole('heading', { name: 'Acme' }).waitFor();
    await signInWith(recovery);
    await page.locator('.field [role=alert]').filter({ hasText: 'The code is wrong, or was used' }).waitFor();
    for (const path of ['sign-in', 'sign-up', 'sign-in/provider', 'invite']) {
      await page.goto(`${server.url}/${path}`);
      await page.getByRole('heading').first().waitFor();
      await checkLooks(page, path);
    }
  });

  await t.test(
    'an account is deleted with its password, unless an organization would lose its last owner',
    async () => {
      await signInAs('first@example.com');
      await page.getByRole('heading', { name: 'default' }).waitFor();
      await page.goto(`${server.url}/account`);
      await page.getByRole('button', { name: 'Delete your account' }).click();
      await page.getByLabel('Type first@example.com to confirm').fill('first@example.com');
      const password = page.locator('dialog').getByRole('textbox', { name: 'Password' });
      await password.fill('a guess');
      await page.getByRole('button', { name: 'Delete it for good' }).click();
      await page.locator('dialog .field [role=alert]').filter({ hasText: 'current_password' }).waitFor();
      await password.fill(PASSWORD);
      await page.getByRole('button', { name: 'Delete it for good' }).click();
      await page.getByText("You are the only owner of 'default'").waitFor();
      await page.context().clearCookies();
      await page.goto('about:blank');
    },
  );

  await t.test('scripts cannot read the session, and only the theme is stored', async () => {
    await signInAs('first@example.com');
    await page.getByRole('heading', { name: 'default' }).waitFor();
    assert.equal(await page.evaluate('document.cookie'), '');
    await page.getByRole('button', { name: 'Theme: as the system' }).click();
    await page.getByRole('button', { name: 'Theme: light' }).click();
    assert.equal(await page.evaluate('document.documentElement.dataset.theme'), 'dark');
    assert.deepEqual(await page.evaluate('Object.entries({ ...localStorage })'), [['theme', 'dark']]);
    assert.equal(await page.evaluate('sessionStorage.length'), 0);
    await page.reload();
    await page.getByRole('heading', { name: 'default' }).waitFor();
    assert.equal(await page.evaluate('document.documentElement.dataset.theme'), 'dark');
  });

  assert.deepEqual(complaints, []);
});
