import { FakeNetwork, newFakeNetworkHost } from './fake-network.ts';
import { networkSuite } from '../network/network.suite.ts';

networkSuite('fake', async () => {
  const host = newFakeNetworkHost();
  return {
    open: (options = {}) => new FakeNetwork({ host, ...options }),
    leftovers: async () => [...host.slots.keys()].toSorted(),
    [Symbol.asyncDispose]: async () => undefined,
  };
});
