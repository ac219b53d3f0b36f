import assert from 'node:assert/strict';
import { test } from 'node:test';
import { showLines } from '@svc/contract/visible';
import { IN_A_BROWSER, OWNER, signIn, startDashboard } from '../dashboard/dashboard-fixture.ts';
import { shownBy } from './hostile-reads.ts';
import { HOSTILE_ARGS, makeHostileWorld } from './hostile-world.ts';

/** All that a page shows or says of itself. */
const TEXTS = `[document.title, document.body.textContent, ...[...document.querySelectorAll('[title], [aria-label], [alt], [placeholder]')]
  .flatMap((each) => [each.title, each.ariaLabel, each.alt, each.placeholder])].join(' ')`;

test('stored hostile texts are plain text on every page of the dashboard', IN_A_BROWSER, async (t) => {
  const dashboard = await startDashboard(t, { args: HOSTILE_ARGS });
  const { page, server, complaints } = dashboard;
  const undo = new AsyncDisposableStack();
  t.after(() => undo.disposeAsync());
  const { known } = await makeHostileWorld(server, { slug: 'acme', owner: OWNER }, undo);
  await signIn(dashboard);
  for (const { at, isSeen } of shownBy('dashboard')) {
    const path = at.replaceAll(/\{(\w+)\}/g, (_, id: keyof typeof known) => known[id]);
    await page.goto(`${server.url}${path === '/account' ? path : `/orgs/acme${path.replace(/\/$/, '')}`}`);
    await page.locator('main h1').first().waitFor();
    if (isSeen)
      await page
        .getByText(/<U\+202E>/)
        .first()
        .waitFor({ state: 'attached' });
    if (at === '/account') await page.getByText('agent<U+009B>8m<U+00AD>').first().waitFor();
    const text = String(await page.evaluate(TEXTS));
    assert.equal(text, showLines(text), at);
    assert.deepEqual(complaints, [], at);
  }
});
