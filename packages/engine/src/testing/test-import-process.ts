import { ImageStore } from '../images/image-store.ts';

// Run by the crash test: reports when it is ready, imports on request, and reports when that is done.
const [, , folder = '', path = ''] = process.argv;
const store = new ImageStore({ folder, isInUse: () => false });
await store.recover();
process.once('message', () => {
  const options = { onProgress: () => {}, signal: AbortSignal.timeout(100_000) };
  void store.import({ type: 'folder', path }, 'svc/crash', options).then(() => process.send?.('done'));
});
process.send?.('ready');
