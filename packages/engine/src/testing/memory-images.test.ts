import { imagesSuite } from '../images/images.suite.ts';
import { MemoryImages } from './memory-images.ts';

imagesSuite('images in memory', async () => {
  const inUse = new Set<string>();
  const images = new MemoryImages((id, scope) => inUse.has(scope === undefined ? id : `${scope} ${id}`));
  const reference = (name: string) => `registry.test/${name}:latest`;
  return {
    images,
    inUse,
    reference,
    publish: async (name, content) => images.publish(reference(name), content),
    setReachable: (isReachable) => {
      images.isReachable = isReachable;
    },
    setAuth: (auth) => {
      images.auth = auth;
    },
    holdPulls: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      images.gate = promise;
      return resolve;
    },
    pullCount: () => images.pullCount,
    source: async (content) => ({ type: 'folder', path: `/nonexistent/${content}` }),
  };
});
