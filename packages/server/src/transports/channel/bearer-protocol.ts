/** Pages in browsers cannot set headers of a WebSocket: they offer a protocol of this name with their credential behind it. */
export const BEARER_PROTOCOL = 'svc.bearer.';
