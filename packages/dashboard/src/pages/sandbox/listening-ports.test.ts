import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listeningPorts } from './listening-ports.ts';

const HEAD = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid';

test('the ports of listening sockets are read from the tables of the kernel, each once', () => {
  const v4 = [
    HEAD,
    '   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0',
    '   1: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0',
    '   2: 0100007F:9C40 0100007F:0BB8 01 00000000:00000000 00:00000000 00000000     0',
  ].join('\n');
  const v6 = `${HEAD}\n   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0:0\n`;
  assert.deepEqual(listeningPorts([v4, v6]), [3000, 8080]);
});

test('a table that a sandbox made up gives no port that cannot be one', () => {
  const made = ' 0: 0:0000 0:0 0A\n 1: 0:FFFFF 0:0 0A\n 2: <img src=x> 0A\n 3: 0:ZZZZ 0:0 0A\n';
  assert.deepEqual(listeningPorts([made, '', 'x'.repeat(10_000)]), []);
});
