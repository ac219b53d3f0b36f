/**
 * Node's HTTP module alone. `import … from 'node:http'` reads all that it offers, WebSocket among it, and so loads fetch as well: 50 ms
 * of every start.
 */
export const { Agent, createServer, request, ServerResponse } = process.getBuiltinModule('node:http');
