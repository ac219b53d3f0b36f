import { after, before } from 'node:test';
import type { LinuxNetwork, LinuxNetworkOptions } from '../network/linux-network.ts';
import { startInternet, type Internet } from './internet.ts';
import { TestEngine } from './test-engine.ts';

interface Connected {
  readonly internet: Internet;
  readonly engine: TestEngine;
  readonly network: LinuxNetwork;
}

/** Set-up of a test file: its own simulated internet, and an engine that uses its resolver. `octet` is the engine's. */
export function withInternet(
  octet: number,
  begin: (connected: Connected) => Promise<void> | void,
  options: Partial<LinuxNetworkOptions> = {},
): void {
  const undo = new AsyncDisposableStack();
  const setUp = async () => {
    const internet = undo.use(await startInternet());
    const resolvers = [{ address: internet.resolver, port: 53 }];
    const engine = undo.use(await TestEngine.make(octet, { resolvers, ...options }));
    const network = engine.open();
    await network.recover([]);
    await begin({ internet, engine, network });
  };
  let ready: Promise<void> | undefined;
  before(() => (ready = setUp()));
  after(async () => {
    // A run without a selected test ends during the set-up, and a failed set-up has resources to release too.
    await ready?.catch(() => undefined);
    await undo.disposeAsync();
  });
}
