import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client, Sandbox } from '@svc/sdk';
import { createLocalToken } from '@svc/server/local';
import { importPython } from '../engine/interpreter-images.ts';
import { checkLooks } from './check-accessible.ts';
import { IN_A_BROWSER, OWNER, signIn, startDashboard } from './dashboard-fixture.ts';

const CODE = `def double(n):\nreturn n * 2 # twice`;
const colourOf = (selector: string): string =>
  `getComputedStyle(document.querySelector(${JSON.stringify(selector)})).color`;
const boxOf = (name: string): string =>
  `document.querySelector('section[aria-label="${name}"]').getBoundingClientRect().toJSON()`;

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

test('code is written in an editor with highlighting, its output beside it', IN_A_BROWSER, async (t) => {
  const dashboard = await startDashboard(t);
  const { page, server, complaints } = dashboard;
  await importPython(server.engine);
  const { secret } = await createLocalToken({ dataFolder: server.engine.folder }, OWNER, { name: 'test' });
  const client = new Client({ apiUrl: server.url, apiKey: secret, organization: 'acme' });
  const sandbox = await Sandbox.create({ client, name: 'code', image: 'python' });
  await signIn(dashboard);
  const address = `${server.url}/orgs/acme/sandboxes/${sandbox.id}`;
  const editor = page.getByRole('textbox', { name: 'Code', exact: true });

  await t.test('words have the colours of their kind, and lines are indented', async () => {
    await page.goto(`${address}/code`);
    await editor.click();
    await page.keyboard.type(CODE);
    await page.locator('.tok-keyword').filter({ hasText: 'return' }).waitFor();
    const colours = ['.cm-content', '.tok-keyword', '.tok-number', '.tok-comment'].map(colourOf);
    const found = (await page.evaluate(`[${colours.join()}]`)) as readonly string[];
    assert.equal(new Set(found).size, colours.length, found.join(' '));
    assert.match(await editor.innerText(), /^def double\(n\):\n {4}return n \* 2 # twice$/);
    await page.getByLabel('Language').selectOption('javascript');
    await page.getByLabel('Language').selectOption('python');
    assert.match(await editor.innerText(), /^def double/, 'another language keeps the code');
  });

  await t.test('Tab indents, and after Escape leaves the editor', async () => {
    const inEditor = `document.activeElement.closest('.code-editor') !== null`;
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(inEditor), true);
    await page.keyboard.press('Escape');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(inEditor), false);
  });

  await t.test('the output is at the side of the editor, on a phone below it', async () => {
    await editor.press('Control+A');
    await page.keyboard.type('print("a" * 3)');
    await editor.press('Control+Enter');
    await page.locator('.code-output').getByText('aaa').waitFor();
    const boxes = async () =>
      (await page.evaluate(`[${boxOf('Run code')}, ${boxOf('Output')}]`)) as [Box, Box];
    await page.setViewportSize({ width: 1280, height: 800 });
    const [left, right] = await boxes();
    assert.ok(right.left >= left.right && right.top < left.bottom, JSON.stringify([left, right]));
    await page.setViewportSize({ width: 390, height: 844 });
    const [upper, lower] = await boxes();
    assert.ok(lower.top >= upper.bottom, JSON.stringify([upper, lower]));
    await checkLooks(page, 'code');
  });

  await t.test(
    'a file is edited with the colours of its language, and keeps the ends of its lines',
    async () => {
      await sandbox.files.write('/tmp/one.py', '# first\r\nanswer = 42\r\n');
      await page.goto(`${address}/files?path=/tmp`);
      await page.getByRole('button', { name: 'one.py', exact: true }).click();
      await page.locator('.tok-comment').filter({ hasText: '# first' }).waitFor();
      await checkLooks(page, 'file editor');
      const margin = `document.querySelector('.cm-editor').getBoundingClientRect().left -
      document.querySelector('dialog').getBoundingClientRect().left`;
      assert.ok(Number(await page.evaluate(margin)) >= 12, 'it does not touch the edge of the dialog');
      await page.getByRole('textbox', { name: 'Content of /tmp/one.py' }).click();
      await page.keyboard.press('Control+Home');
      await page.keyboard.type('# new');
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByText('/tmp/one.py is saved').waitFor();
      const saved = new TextDecoder().decode(await sandbox.files.read('/tmp/one.py'));
      assert.equal(saved, '# new\r\n# first\r\nanswer = 42\r\n');
    },
  );

  assert.deepEqual(complaints, []);
});
