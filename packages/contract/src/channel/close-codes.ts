/**
 * With this a server closes the WebSocket of a channel when the sandbox behind it ran out of memory; the reason of the close is
 * a sentence. Of the codes that RFC 6455 leaves to applications; its end is what shells report for a process that was killed.
 */
export const OUT_OF_MEMORY_CLOSE = 4137;
