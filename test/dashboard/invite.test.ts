import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLocalToken } from '@svc/server/local';
import { checkLooks } from './check-accessible.ts';
import { IN_A_BROWSER, OWNER, signIn, startDashboard } from './dashboard-fixture.ts';

const PASSWORD = 'a long enough password';

test('an invited person sees the organization and the inviter before answering', IN_A_BROWSER, async (t) => {
  const dashboard = await startDashboard(t);
  const { page, server, complaints } = dashboard;
  const { secret } = await createLocalToken({ dataFolder: server.engine.folder }, OWNER, { name: 'test' });
  const authorization = `Bearer ${secret}`;
  const invites = `${server.url}/v1/orgs/acme/invites`;
  const invite = async (email: string): Promise<{ readonly id: string; readonly link: string }> => {
    const headers = { authorization, 'content-type': 'application/json' };
    const body = JSON.stringify({ email, role: 'admin' });
    const answer = await fetch(invites, { method: 'POST', headers, body });
    const { id, token } = (await answer.json()) as { readonly id: string; readonly token: string };
    return { id, link: `${server.url}/invite#token=${token}` };
  };
  const open = async (link: string): Promise<void> => {
    await page.goto('about:blank');
    await page.goto(link);
  };
  const expectInvite = async (): Promise<void> => {
    await page.getByRole('heading', { name: 'Join Acme' }).waitFor();
    await page.getByText(`${OWNER} invites you`).waitFor();
    await page.getByText('as admin').waitFor();
    await page.getByText('in 6 days').waitFor();
  };

  await t.test('the dialog says once what the link is for, and until when', async () => {
    await signIn(dashboard);
    await page.goto(`${server.url}/orgs/acme/members`);
    await page.getByRole('button', { name: 'Invite a person' }).click();
    await page.getByLabel('E-mail address').fill('cy@example.com');
    await page.getByRole('button', { name: 'Create the link' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('heading', { name: 'Send this link to cy@example.com' }).waitFor();
    await dialog.getByText('svc sends no mail').waitFor();
    await dialog.getByText('in 6 days').waitFor();
    assert.equal(await page.getByText('shown only now').count(), 0, 'the link is there to be passed on');
    await checkLooks(page, 'invite dialog');
    await dialog.getByRole('button', { name: 'Done' }).click();
    await page.context().clearCookies();
  });

  await t.test('without an account: makes one for the address of the invite', async () => {
    await open((await invite('bob@example.com')).link);
    await expectInvite();
    assert.equal(await page.getByLabel('E-mail address').inputValue(), 'bob@example.com');
    await checkLooks(page, 'invite');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Create the account' }).click();
    await page.getByRole('button', { name: 'Join Acme' }).click();
    await page.waitForURL(`${server.url}/orgs/acme`);
    await page.context().clearCookies();
  });

  await t.test('with an account: signs in on the same page, and another account cannot answer', async () => {
    await open((await invite('dee@example.com')).link);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Create the account' }).click();
    await expectInvite();
    await page.getByRole('button', { name: 'Decline' }).click();
    const { link } = await invite('eve@example.com');
    await open(link);
    await page.getByText('You are signed in as dee@example.com').waitFor();
    await checkLooks(page, 'invite to another address');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await expectInvite();
    const again = await invite('dee@example.com');
    await open(again.link);
    await page.getByRole('button', { name: 'I have an account' }).click();
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('button', { name: 'Join Acme' }).click();
    await page.waitForURL(`${server.url}/orgs/acme`);
    await page.context().clearCookies();
  });

  await t.test('a withdrawn invite shows an error instead of asking for a password', async () => {
    const { id, link } = await invite('flo@example.com');
    await fetch(`${invites}/${id}`, { method: 'DELETE', headers: { authorization } });
    await open(link);
    await page.getByText('The invite is not valid or has expired').waitFor();
    assert.equal(await page.getByLabel('Password').count(), 0);
  });

  assert.deepEqual(complaints, []);
});
