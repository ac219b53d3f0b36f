/**
 * Node's HTTP module alone. `import … from 'node:http'` reads all of its exports, also WebSocket, which loads fetch: 50 ms of every
 * start.
 */
export const { Agent, createServer, request, ServerResponse } = process.getBuiltinModule('node:http');
