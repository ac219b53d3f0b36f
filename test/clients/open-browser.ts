import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startQuietNetwork } from './quiet-network.ts';

/** As much of playwright-core as tests use; it is installed beside this file, outside the workspace. */
export interface Locator {
  click(options?: object): Promise<void>;
  fill(text: string): Promise<void>;
  press(keys: string): Promise<void>;
  selectOption(value: string): Promise<unknown>;
  /** A path is for what is large. */
  setInputFiles(
    files: string | { readonly name: string; readonly mimeType: string; readonly buffer: Buffer },
  ): Promise<void>;
  /** Until it is there, or in another state. */
  waitFor(options?: { readonly state?: 'visible' | 'hidden' | 'attached' | 'detached' }): Promise<void>;
  innerText(): Promise<string>;
  inputValue(): Promise<string>;
  screenshot(): Promise<Buffer>;
  getAttribute(name: string): Promise<string | null>;
  count(): Promise<number>;
  isVisible(): Promise<boolean>;
  first(): Locator;
  nth(index: number): Locator;
  filter(options: { readonly hasText?: string | RegExp }): Locator;
  locator(selector: string): Locator;
  getByRole(role: string, options?: { readonly name?: string | RegExp; readonly exact?: boolean }): Locator;
  getByText(text: string | RegExp, options?: { readonly exact?: boolean }): Locator;
  getByLabel(text: string | RegExp, options?: { readonly exact?: boolean }): Locator;
}
export interface Page extends Pick<Locator, 'locator' | 'getByRole' | 'getByText' | 'getByLabel'> {
  goto(url: string): Promise<unknown>;
  /** Answers what it asks for at this address in place of a server. */
  route(
    url: string,
    answer: (route: {
      fulfill(answer: { readonly contentType: string; readonly body: string }): Promise<void>;
    }) => Promise<void>,
  ): Promise<void>;
  reload(): Promise<unknown>;
  url(): string;
  content(): Promise<string>;
  /** Runs an expression in the page and awaits what it gives. */
  evaluate(expression: string): Promise<unknown>;
  addInitScript(script: { readonly content: string }): Promise<void>;
  waitForURL(url: string | RegExp): Promise<void>;
  waitForEvent(name: 'download'): Promise<Download>;
  on(name: 'console', listener: (message: { type(): string; text(): string }) => void): void;
  on(name: 'pageerror', listener: (error: Error) => void): void;
  readonly keyboard: {
    press(keys: string): Promise<void>;
    type(text: string): Promise<void>;
    /** All at once, without a key: nothing is indented for it. */
    insertText(text: string): Promise<void>;
  };
  emulateMedia(media: { readonly colorScheme: 'light' | 'dark' }): Promise<void>;
  setViewportSize(size: { readonly width: number; readonly height: number }): Promise<void>;
  setDefaultTimeout(milliseconds: number): void;
  screenshot(options: { readonly path: string; readonly fullPage?: boolean }): Promise<unknown>;
  context(): {
    clearCookies(): Promise<void>;
    /** The browser's own interface. */
    newCDPSession(page: Page): Promise<{ send(method: string, input: object): Promise<unknown> }>;
    cookies(): Promise<readonly Readonly<Record<string, unknown>>[]>;
  };
}
export interface Download {
  suggestedFilename(): string;
  path(): Promise<string>;
}
interface Playwright {
  readonly chromium: {
    launchPersistentContext(
      folder: string,
      options: object,
    ): Promise<{ pages(): Page[]; newPage(): Promise<Page>; close(): Promise<void> }>;
  };
}

/** Whose end ends what was started for it: a test, or a program. */
export interface Owner {
  after(end: () => Promise<void>): void;
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
  t: Owner,
  url: string,
  others: readonly string[] = [],
  names: readonly string[] = [],
  flags: readonly string[] = [],
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
    args: [
      ...FLAGS,
      ...flags,
      `--host-resolver-rules=${names.map((name) => `MAP ${name} 127.0.0.1`).join(',')}`,
    ],
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
