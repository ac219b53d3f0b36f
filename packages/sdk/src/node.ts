export { downloadTree } from './node/download-tree.ts';
export { nodeFetch } from './platform/node-fetch.ts';
export type { TreeOptions } from './node/tree-options.ts';
export { uploadTree } from './node/upload-tree.ts';
