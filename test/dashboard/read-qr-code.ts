import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Locator, Page } from '../clients/open-browser.ts';

// Installed beside the driver of the browser, outside the workspace.
const READER = readFileSync(
  createRequire(new URL('../clients/open-browser.ts', import.meta.url)).resolve('jsqr/dist/jsQR.js'),
  'utf8',
);

/** What a camera reads from this part of the page, as it is drawn; null: no code. */
export async function readQrCode(page: Page, code: Locator): Promise<string | null> {
  const picture = (await code.screenshot()).toString('base64');
  await page.evaluate(READER);
  const read = await page.evaluate(`(async () => {
    const image = new Image();
    image.src = 'data:image/png;base64,${picture}';
    await image.decode();
    const { width, height } = image;
    const canvas = Object.assign(document.createElement('canvas'), { width, height }).getContext('2d');
    canvas.drawImage(image, 0, 0);
    return jsQR(canvas.getImageData(0, 0, width, height).data, width, height, { inversionAttempts: 'dontInvert' })?.data ?? null;
  })()`);
  return typeof read === 'string' ? read : null;
}
