import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { startQuietNetwork } from './quiet-network.ts';

/** As much of playwright-core as tests use; it is installed beside this file, outside the workspace. */
interface Page {
  goto(url: string): Promise<unknown>;
  /** Runs an expression in the page and awaits what it gives. */
  evaluate(expression: string): Promise<unknown>;
  setViewportSize(size: { readonly width: number; readonly height: number }): Promise<void>;
}
interface Playwright {
  readonly chromium: {
    launchPersistentContext(
      folder: string,
      options: object,
    ): Promise<{ pages(): Page[]; newPage(): Promise<Page>; close(): Promise<void> }>;
  };
}

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/**
 * Debian's Chromium with a fresh profile, at this address. It reaches this and `others` alone, and ends with the test. Names that end in
 * `.localhost` lead there anyway, and so do `names`.
 */
export async function openBrowser(
  t: TestContext,
  url: string,
  others: readonly string[] = [],
  names: readonly string[] = [],
): Promise<Page> {
  // SAFETY: the version in package-lock.json has what `Playwright` says.
  const { chromium } = createRequire(import.meta.url)('playwright-core') as Playwright;
  const profile = await mkdtemp(join(tmpdir(), 'svc-browser-'));
  const enter = await startQuietNetwork(
    t,
    [url, ...others].map((address) => Number(new URL(address).port)),
  );
  const program = join(profile, 'chromium');
  await writeFile(program, `#!/bin/sh\nexec ${enter} /usr/bin/chromium "$@"\n`, { mode: 0o755 });
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: program,
    args: [...FLAGS, `--host-resolver-rules=${names.map((name) => `MAP ${name} 127.0.0.1`).join(',')}`],
    timeout: 120_000,
  });
  t.after(async () => {
    await context.close();
    // What it has started may write for a moment longer.
    await rm(profile, { recursive: true, force: true, maxRetries: 10 });
  });
  const page = context.pages()[0] ?? (await context.newPage());
  await page.goto(url);
  return page;
}
