import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FileFailed, type ChannelFiles } from '@svc/contract';
import { RecentUsers } from './recent-users.ts';

const never = new AbortController().signal;
const now = () => Math.floor(Date.now() / 1000);

/** A sandbox whose /etc/passwd has one user; it has no /etc/group. */
function guest() {
  const passwd = { text: 'ada:x:1000:1000::/home/ada:/bin/sh\n', seconds: now() - 60 };
  let reads = 0;
  const answer = <T>(path: string, value: () => T): Promise<T> =>
    path === '/etc/passwd'
      ? Promise.resolve(value())
      : Promise.reject(new FileFailed('no such file or directory', 'ENOENT'));
  const files = {
    stat: (path: string) =>
      answer(path, () => ({ size: passwd.text.length, modifiedSeconds: passwd.seconds })),
    readFile: (path: string) =>
      answer(path, () => {
        reads++;
        return Buffer.from(passwd.text);
      }),
  };
  // The part of it that is called.
  return { passwd, files: files as unknown as ChannelFiles, reads: () => reads };
}

test('users are read once, and again when their file has changed', async () => {
  const [recent, { passwd, files, reads }] = [new RecentUsers(), guest()];
  const homeOf = async () => (await recent.read('box', files, never)).find('ada')?.home;
  assert.deepEqual([await homeOf(), await homeOf(), reads()], ['/home/ada', '/home/ada', 1]);
  passwd.text = 'ada:x:1000:1000::/home/new:/bin/sh\n';
  passwd.seconds = now() - 30;
  assert.deepEqual([await homeOf(), await homeOf(), reads()], ['/home/new', '/home/new', 2]);
});

test('users of a file that was changed just now are not kept: it may change again within the second', async () => {
  const [recent, { passwd, files }] = [new RecentUsers(), guest()];
  const homeOf = async () => (await recent.read('box', files, never)).find('ada')?.home;
  passwd.seconds = now();
  assert.equal(await homeOf(), '/home/ada');
  passwd.text = 'ada:x:1000:1000::/home/new:/bin/sh\n';
  assert.equal(await homeOf(), '/home/new');
});

test('users of one sandbox are not those of another, and only the latest sandboxes are kept', async () => {
  const recent = new RecentUsers();
  const [first, other] = [guest(), guest()];
  other.passwd.text = 'ada:x:1000:1000::/home/foo:/bin/sh\n';
  const homeOf = async (id: string, { files }: typeof first) =>
    (await recent.read(id, files, never)).find('ada')?.home;
  assert.deepEqual([await homeOf('a', first), await homeOf('b', other)], ['/home/ada', '/home/foo']);
  for (let n = 0; n < 300; n++) await homeOf(`c${n}`, other);
  await homeOf('a', first);
  assert.equal(first.reads(), 2);
});
