import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nameOfBrowser } from './name-of-browser.ts';

const WEBKIT = 'AppleWebKit/605.1.15 (KHTML, like Gecko)';

test('a browser is called by its name, not by those that it wants to be taken for', () => {
  const names = {
    [`Mozilla/5.0 (X11; Linux x86_64) ${WEBKIT} Chrome/146.0.0.0 Safari/537.36`]: 'Chrome on Linux',
    [`Mozilla/5.0 (X11; Linux x86_64) ${WEBKIT} HeadlessChrome/146.0.0.0 Safari/537.36`]: 'Chrome on Linux',
    [`Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${WEBKIT} Chrome/146.0.0.0 Safari/537.36 Edg/146.0.0.0`]:
      'Edge on Windows',
    'Mozilla/5.0 (X11; Ubuntu; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0': 'Firefox on Linux',
    [`Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${WEBKIT} Version/26.0 Safari/605.1.15`]:
      'Safari on macOS',
    [`Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) ${WEBKIT} Version/26.0 Mobile/15E148 Safari/604.1`]:
      'Safari on iOS',
    [`Mozilla/5.0 (Linux; Android 16) ${WEBKIT} Chrome/146.0.0.0 Mobile Safari/537.36`]: 'Chrome on Android',
  };
  for (const [sent, name] of Object.entries(names)) assert.equal(nameOfBrowser(sent), name, sent);
});

test('an unknown program keeps its name', () => {
  assert.equal(nameOfBrowser('curl/8.5.0'), 'curl/8.5.0');
  assert.equal(nameOfBrowser(''), 'unknown');
});
