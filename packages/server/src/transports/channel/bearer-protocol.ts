/**
 * Prefix of the WebSocket subprotocol that carries the credential of a page, because browsers cannot set headers of a
 * WebSocket.
 */
export const BEARER_PROTOCOL = 'svc.bearer.';
