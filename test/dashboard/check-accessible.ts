import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from '../clients/open-browser.ts';

// Installed beside the driver of the browser, outside the workspace.
const AXE = readFileSync(
  createRequire(new URL('../clients/open-browser.ts', import.meta.url)).resolve('axe-core/axe.min.js'),
  'utf8',
);

export const SIZES = { wide: { width: 1320, height: 860 }, phone: { width: 390, height: 844 } } as const;
export const SCHEMES = ['light', 'dark'] as const;

/** Between them every colour and every width. */
const LOOKS = [
  { size: 'phone', colorScheme: 'dark' },
  { size: 'wide', colorScheme: 'light' },
] as const;

export const SETTLED = `Promise.allSettled(
  document.getAnimations().filter((each) => each instanceof CSSTransition).map(({ finished }) => finished),
).then(() => undefined)`;

/** What was in order is not described, nor where it stands: that is most of what it does. */
const RUN = `axe.run({ resultTypes: ['violations'], selectors: false, preload: false })`;

interface Finding {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** That axe finds nothing serious on the page as it is, and that nothing of it is beyond the edge. */
export async function checkAccessible(page: Page, name: string): Promise<void> {
  // Half a megabyte: once for each document.
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(AXE);
  const { violations } = (await page.evaluate(RUN)) as { readonly violations: readonly Finding[] };
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  const messages = serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
  assert.deepEqual(messages, [], name);
  await checkWidth(page, name);
}

/** Nothing reaches beyond the right edge of the page. */
export async function checkWidth(page: Page, name: string): Promise<void> {
  const overflow = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
  assert.ok(overflow <= 0, `${name} is ${overflow} pixels too wide`);
}

/** As `checkAccessible`, in the dark on a phone and in the light on a wide screen; it stays that. */
export async function checkLooks(page: Page, name: string): Promise<void> {
  for (const { size, colorScheme } of LOOKS) {
    await page.setViewportSize(SIZES[size]);
    await page.emulateMedia({ colorScheme });
    // Colours in a transition are not checked.
    await page.evaluate(SETTLED);
    await checkAccessible(page, `${name}, ${size}, ${colorScheme}`);
  }
}
