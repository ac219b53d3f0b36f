import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Network } from '@svc/contract';
import fc from 'fast-check';
import { NO_INTERCEPTION } from '../egress/proxied-sandboxes.ts';
import { parseAddress } from '../policy/address.ts';
import { decide, decideName, isByName } from '../policy/decide.ts';
import type { HostNetworks } from '../policy/groups.ts';
import { resolvePolicy, type ResolvedPolicy } from '../policy/resolve-policy.ts';
import { inNamespace } from '../testing/command.ts';
import { startInternet, type Internet } from '../testing/internet.ts';
import { policiesNaming } from '../testing/random-policies.ts';
import { speak, type Heard, type Speech } from '../testing/speaker.ts';
import { TestEngine } from '../testing/test-engine.ts';

const POLICIES = 12;
const SPEECHES = 30;
const AT_ONCE = 4;
/** For what is dropped; what should have been answered is tried again with more of it. */
const [BRIEF_MS, LONG_MS] = [1500, 30_000];
const LISTENER = fileURLToPath(new URL('../testing/listener-main.ts', import.meta.url));
const PORTS = [22, 80, 443, 8443];
const READ_PORTS = [443, 8443];
/** Those with `rebind` lead to the private address, the others to the public one. */
const NAMES = [
  'public.example',
  'a.public.example',
  'b.a.public.example',
  'badpublic.example',
  'rebind.example',
  'example',
];
const BYPASSED = 'b.a.public.example';

interface Case {
  readonly network: Network;
  readonly isRead: boolean;
  /** At all ports; needs `isRead`. */
  readonly isPlainRead: boolean;
  readonly asked: readonly string[];
  readonly speeches: readonly Speech[];
}

test('for random policies the running proxy does with each connection what the decision about it says', async () => {
  await using internet = await startInternet();
  await using server = await listen(internet);
  const resolvers = [{ address: internet.resolver, port: 53 }];
  await using engine = await TestEngine.make(94, { resolvers });
  const network = engine.open();
  await network.recover([]);
  const trust = { ...NO_INTERCEPTION.trust, upstreamCas: [server.certificate] };
  const reading = { ...NO_INTERCEPTION, interceptedPorts: READ_PORTS, bypass: [BYPASSED], trust };
  // A failure says which it was: SVC_TEST_SEED=… repeats it.
  const seed = Number(process.env['SVC_TEST_SEED'] ?? randomInt(2 ** 31));
  const counted = { closed: 0, carried: 0, read: 0 };

  const tryOne = async ({ network: given, isRead, isPlainRead, asked, speeches }: Case) => {
    const slot = await network.acquire('public', AbortSignal.timeout(100_000));
    const policy = resolvePolicy(given);
    await network.setPolicy(slot, policy, isRead ? { ...reading, readsPlainHttp: isPlainRead } : null);
    const { hostNetworks } = await network.decisionContext(slot);
    const wanted = speeches.map((speech) =>
      expected(speech, { policy, isRead, isPlainRead, asked, hostNetworks, internet }),
    );
    const order = { nameserver: slot.link?.nameserver ?? '', names: asked, certificate: server.certificate };
    const heard = [...(await speak(slot.networkNamespace, { ...order, speeches, patienceMs: BRIEF_MS }))];
    const late = speeches.flatMap((_, at) => (heard[at] === 'closed' && wanted[at] !== 'closed' ? [at] : []));
    if (late.length > 0) {
      const again = late.flatMap((at) => speeches[at] ?? []);
      const answers = await speak(slot.networkNamespace, { ...order, speeches: again, patienceMs: LONG_MS });
      for (const [index, at] of late.entries()) heard[at] = answers[index] ?? 'closed';
    }
    for (const [at, speech] of speeches.entries()) {
      const flow = JSON.stringify({ speech, asked, isRead, isPlainRead, network: given });
      assert.equal(heard[at], wanted[at], `SVC_TEST_SEED=${seed}: ${flow}`);
      counted[heard[at] ?? 'closed'] += 1;
    }
    await network.release(slot.key);
  };

  const cases = fc.sample(casesIn(internet), { seed, numRuns: POLICIES }).map(mix);
  for (let at = 0; at < cases.length; at += AT_ONCE)
    await Promise.all(cases.slice(at, at + AT_ONCE).map(tryOne));
  for (const [kind, count] of Object.entries(counted))
    assert.ok(count > 0, `SVC_TEST_SEED=${seed}: none was ${kind}`);
});

/**
 * Half of them are read, half of either allow by default, and half of those that are read are so over plain HTTP: chance alone may
 * leave out a kind.
 */
function mix({ network, ...given }: Omit<Case, 'isRead' | 'isPlainRead'>, index: number): Case {
  const isRead = index % 2 === 0;
  const rest = { ...given, isRead, isPlainRead: isRead && index % 8 < 4 };
  if (index % 4 < 2) return { ...rest, network };
  return { ...rest, network: { ...network, policy: { ...network.policy, default_egress: 'allow' } } };
}

async function listen({ namespace, publicAddress, privateAddress }: Internet) {
  const words = [publicAddress, privateAddress, '--', ...PORTS.map(String)];
  const line = inNamespace(namespace, process.execPath, LISTENER, ...words);
  const child = spawn(line[0], line.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] });
  const [told] = (await once(child.stdout, 'data', { signal: AbortSignal.timeout(60_000) })) as [Buffer];
  return {
    certificate: JSON.parse(told.toString()) as string,
    [Symbol.asyncDispose]: async () => void child.kill('SIGKILL'),
  };
}

function casesIn({
  publicAddress,
  privateAddress,
}: Internet): fc.Arbitrary<Omit<Case, 'isRead' | 'isPlainRead'>> {
  const address = fc.constantFrom(publicAddress, publicAddress, privateAddress);
  const name = fc.option(fc.constantFrom(...NAMES), { freq: 6 });
  const spelled = fc
    .tuple(name, fc.nat(3))
    .map(([text, way]) => text && ([text, text.toUpperCase(), `${text}.`, `${text}:443`][way] ?? text));
  const request = fc
    .tuple(fc.constantFrom('GET', 'DELETE'), fc.constantFrom('/', '/a?b=c', '/a.public.example'))
    .map((words) => words.join(' '));
  const speech = fc
    .record({
      kind: fc.constantFrom('tls' as const, 'tls' as const, 'http' as const, 'line' as const),
      address,
      port: fc.constantFrom(...PORTS),
      serverName: name,
      host: spelled,
      request,
      isFronting: fc.nat(3).map((number) => number === 0),
    })
    // Most requests are for whom the greeting names; without a name, for the address.
    .map(({ isFronting, ...given }) => ({
      ...given,
      host: given.kind === 'tls' && !isFronting ? (given.serverName ?? given.address) : given.host,
    }));
  return fc.record({
    network: fc.record({
      policy: policiesNaming(NAMES),
      strict: fc.boolean(),
      dns: fc.constant({ rebind_protection: false }),
    }),
    asked: fc.subarray(NAMES),
    speeches: fc.array(speech, { minLength: SPEECHES, maxLength: SPEECHES }),
  });
}

interface Given {
  readonly policy: ResolvedPolicy;
  readonly isRead: boolean;
  readonly isPlainRead: boolean;
  readonly asked: readonly string[];
  readonly hostNetworks: HostNetworks;
  readonly internet: Internet;
}

function expected(
  speech: Speech,
  { policy, isRead, isPlainRead, asked, hostNetworks, internet }: Given,
): Heard {
  const { kind, address: text, port, serverName } = speech;
  const address = parseAddress(text);
  assert.ok(address);
  // The name `example` leads nowhere.
  const leadsHere = (name: string) =>
    name.includes(text === internet.privateAddress ? 'rebind' : 'public') &&
    decideName(policy, name, 'udp').action === 'allow';
  const host = speech.host?.toLowerCase().replace(/\.?(:443)?$/, '') ?? '';
  const said = kind === 'tls' ? (serverName ?? '') : host;
  const flow = {
    direction: 'egress',
    protocol: 'tcp',
    address,
    port,
    names: asked.filter(leadsHere),
  } as const;
  const { action, rule } = decide(policy, kind === 'line' ? flow : { ...flow, sni: said }, hostNetworks);
  if (action === 'deny') return 'closed';
  const isIntercepted = isRead && READ_PORTS.includes(port) && !(kind === 'tls' && said === BYPASSED);
  const decider = rule === null ? undefined : policy.rules[rule];
  const isClaim = policy.strict && decider !== undefined && isByName(decider.destination);
  if (!isIntercepted && !isClaim && !(isPlainRead && kind === 'http')) return 'carried';
  if (kind === 'line' || (kind === 'tls' && !isIntercepted)) return 'closed';
  const isForOne = kind === 'tls' ? host === (serverName ?? text) : host !== '';
  // Only for the port that it goes to.
  if (!isForOne || (speech.host?.endsWith(':443') === true && port !== 443)) return 'closed';
  return kind === 'tls' ? 'read' : 'carried';
}
