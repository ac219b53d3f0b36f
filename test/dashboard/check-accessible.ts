import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from '../clients/open-browser.ts';

// Installed beside the driver of the browser, outside the workspace.
const AXE = createRequire(new URL('../clients/open-browser.ts', import.meta.url)).resolve(
  'axe-core/axe.min.js',
);

interface Finding {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** That axe finds nothing serious on the page as it is. */
export async function checkAccessible(page: Page, name: string): Promise<void> {
  await page.evaluate(readFileSync(AXE, 'utf8'));
  const { violations } = (await page.evaluate('axe.run()')) as { readonly violations: readonly Finding[] };
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  const told = serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' | ')}`);
  assert.deepEqual(told, [], name);
}
