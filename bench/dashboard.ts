import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from '../test/clients/open-browser.ts';
import { signIn, startDashboard } from '../test/dashboard/dashboard-fixture.ts';
import { ratio, type Benchmark, type BenchmarkContext, type Measurement } from './benchmark.ts';

const ROUNDS = 20;
const KILOBYTE = 1000;

/** Load time of the dashboard, compared with an empty page in the same browser. */
export const dashboard: Benchmark = {
  name: 'dashboard',
  description: 'loads of the overview in Chromium, without and with what it keeps, beside an empty page',
  promise: 'the dashboard is there within a second on localhost',
  async run(context) {
    await using ends = new AsyncDisposableStack();
    const floor = createServer((_request, response) =>
      response
        .setHeader('content-type', 'text/html')
        .end('<!doctype html><title>floor</title><h1>floor</h1>'),
    );
    floor.listen(0, '127.0.0.1');
    await once(floor, 'listening');
    ends.defer(() => floor.close().closeAllConnections());
    const floorUrl = `http://127.0.0.1:${(floor.address() as AddressInfo).port}/`;
    const owner = { after: (end: () => Promise<void>) => ends.defer(end) };
    const started = await startDashboard(owner, { others: [floorUrl] });
    await signIn(started);
    await started.page.addInitScript({ content: WATCH });
    return await measure(started.page, { ours: `${started.server.url}/orgs/acme`, floor: floorUrl }, context);
  },
};

interface Load {
  readonly paintMs: number;
  /** Until its heading is there, and the browser is free to react. */
  readonly readyMs: number;
  readonly longMs: number;
  readonly requests: number;
  readonly bytes: number;
}

async function measure(
  page: Page,
  urls: { readonly ours: string; readonly floor: string },
  { isQuick, signal }: BenchmarkContext,
): Promise<Measurement[]> {
  const loads = { first: [] as Load[], again: [] as Load[], floor: [] as Load[] };
  const browser = await page.context().newCDPSession(page);
  // Without this call the browser ignores the cache setting below.
  await browser.send('Network.enable', {});
  for (let round = 0; round <= (isQuick ? 1 : ROUNDS); round += 1) {
    signal.throwIfAborted();
    await browser.send('Network.setCacheDisabled', { cacheDisabled: true });
    const floor = await load(page, urls.floor);
    const first = await load(page, urls.ours);
    await browser.send('Network.setCacheDisabled', { cacheDisabled: false });
    // Fills the cache.
    await load(page, urls.ours);
    const again = await load(page, urls.ours);
    // The first round only warms caches that are not the page's.
    if (round === 0) continue;
    loads.floor.push(floor);
    loads.first.push(first);
    loads.again.push(again);
  }
  const of = (which: keyof typeof loads, field: keyof Load) => loads[which].map((each) => each[field]);
  return [
    { what: 'first visit: first paint', unit: 'ms', values: of('first', 'paintMs') },
    { what: 'first visit: ready', unit: 'ms', values: of('first', 'readyMs'), target: { atMost: 1000 } },
    { what: 'first visit: long tasks, together', unit: 'ms', values: of('first', 'longMs') },
    { what: 'first visit: requests', unit: '', values: of('first', 'requests'), target: { atMost: 30 } },
    {
      what: 'first visit: sent to the browser',
      unit: 'kB',
      values: of('first', 'bytes').map((bytes) => bytes / KILOBYTE),
      target: { atMost: 350 },
    },
    { what: 'again: first paint', unit: 'ms', values: of('again', 'paintMs') },
    { what: 'again: ready', unit: 'ms', values: of('again', 'readyMs'), target: { atMost: 1000 } },
    { what: 'an empty page: ready', unit: 'ms', values: of('floor', 'readyMs') },
    ratio('first visit / an empty page', of('first', 'readyMs'), of('floor', 'readyMs')),
  ];
}

async function load(page: Page, url: string): Promise<Load> {
  await page.goto('about:blank');
  await page.goto(url);
  return (await page.evaluate(`window.loaded.then(() => {
    const [visit] = performance.getEntriesByType('navigation');
    const all = [visit, ...performance.getEntriesByType('resource')];
    const [paint] = performance.getEntriesByName('first-contentful-paint');
    return {
      paintMs: paint?.startTime ?? window.readyMs,
      readyMs: window.readyMs,
      longMs: window.longMs,
      requests: all.length,
      bytes: all.reduce((sum, { transferSize }) => sum + transferSize, 0),
    };
  })`)) as Load;
}

/** In every page, before its own scripts: notes long tasks, and when its heading is there. */
const WATCH = `
  window.longMs = 0;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.longMs += duration;
  }).observe({ type: 'longtask', buffered: true });
  window.loaded = new Promise((resolve) => {
    const look = () => {
      if (document.querySelector('h1') === null) return requestAnimationFrame(look);
      // A task of its own: it runs when those before it are done.
      setTimeout(() => {
        window.readyMs = performance.now();
        // So that the paint, and what is asked for last, are known.
        setTimeout(resolve, 300);
      });
    };
    look();
  });
`;
