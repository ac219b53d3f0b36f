import { after, before } from 'node:test';
import { imagesSuite } from './images.suite.ts';
import { imageOf, layerOf } from '../testing/test-layers.ts';
import { TestRegistry } from '../testing/test-registry.ts';
import { folderSource, newTestStore } from '../testing/test-store.ts';

let registry: TestRegistry;
let repository = 0;
before(async () => {
  registry = await TestRegistry.start();
});
after(() => registry[Symbol.asyncDispose]());

imagesSuite('images in a folder', async (t) => {
  const { store, inUse, scratch } = await newTestStore(t);
  const prefix = `suite${repository++}`;
  registry.isReachable = true;
  registry.gate = Promise.resolve();
  registry.auth = null;
  return {
    images: store,
    inUse,
    reference: (name) => `${registry.host}/${prefix}/${name}:latest`,
    publish: async (name, content) => {
      const image = imageOf([await layerOf([{ name: 'content', body: content }])]);
      return registry.push(`${prefix}/${name}`, 'latest', image);
    },
    setReachable: (isReachable) => {
      registry.isReachable = isReachable;
    },
    setAuth: (auth) => {
      registry.auth = auth;
    },
    holdPulls: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      registry.gate = promise;
      return resolve;
    },
    // Every pull fetches the configuration once to read it and once with its one layer.
    pullCount: () => registry.countOf(`/${prefix}/app/blobs/`) / 3,
    source: (content) => folderSource(scratch, content),
  };
});
